/* SPDX-License-Identifier: Apache-2.0 */
/* The guest of the tests of templates: tries what it is told over its channel.
 *
 * Takes:   words on descriptor 3, one a packet, some with an argument.
 * Gives:   a number for each.
 * Never:   is part of a program that is installed.
 * Runs in: the template that a test starts, and its children.
 */
#ifndef JAIL_TEST_GUEST_H
#define JAIL_TEST_GUEST_H

int test_guest_template(
    void); /* serves as a template whose children are such guests; exit status */

#endif
