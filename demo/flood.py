# SPDX-License-Identifier: Apache-2.0
# "Print your progress." In every step.
step = 0
while True:
    step += 1
    print("step", step, "." * 1000)
