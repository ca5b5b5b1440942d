# SPDX-License-Identifier: Apache-2.0
# "How many primes are there below 200,000, and what is the largest gap between two of them?"
import json

limit = 200_000
sieve = bytearray([1]) * limit
sieve[0:2] = b"\0\0"
for n in range(2, int(limit**0.5) + 1):
    if sieve[n]:
        sieve[n * n :: n] = bytes(len(range(n * n, limit, n)))
primes = [n for n in range(limit) if sieve[n]]
gap, after = max((b - a, a) for a, b in zip(primes, primes[1:]))
answer = {"primes": len(primes), "largest_gap": gap, "after": after}
with open("/workspace/answer.json", "w") as f:
    json.dump(answer, f)
print(json.dumps(answer))
