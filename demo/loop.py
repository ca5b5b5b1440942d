# SPDX-License-Identifier: Apache-2.0
# "Find the smallest n where the sequence repeats." It never does.
seen, n = set(), 0
while True:
    n = (n * n + 1) % (1 << 61)
