# SPDX-License-Identifier: Apache-2.0
# "Build a lookup table of all pairs." There are a few too many of them.
rows = []
while True:
    rows.append(bytearray(8 << 20))
