/* SPDX-License-Identifier: Apache-2.0 */
/* A holder and a supervisor for tests of templates.
 *
 * Takes:   the path of cordon-nest; words for guests (test_guest.h).
 * Gives:   templates, children, answers.
 * Never:   is part of a program that is installed.
 * Runs in: tests.
 */
#ifndef JAIL_TEST_TALK_H
#define JAIL_TEST_TALK_H

#include "jail/child.h"

#include <stdbool.h>

/* A run over a child, word by word. */
struct test_talk {
    struct jail_run *run;
    int channel;
    char answer[64];
    bool closed;
    char said[256];
    size_t said_len;
};

#define TEST_GUEST_NAME "guest%d" /* of the processes of a template; with our pid */
/* In main: the program is its own template, which it starts with the cordon-nest that ARGV names. NULL: it does not
 * start, and a comment tells why. */
struct jail_template *test_begin(int argc, char **argv);
struct jail_child_spec test_child_spec(const char *filter, bool session);
bool test_order(struct jail_template *t, const struct jail_child_spec *spec, struct jail_child *c);
bool test_hear(struct test_talk *t);
bool test_talk(struct test_talk *t, struct jail_child *c, const struct jail_limits *limits,
               int input);
long test_ask(struct test_talk *t, const char *word);
void test_wait_end(struct test_talk *t);
void test_talk_end(struct test_talk *t, struct jail_child *c);
bool test_fresh(struct jail_template *tpl, const char *filter, bool session, struct jail_child *c,
                struct test_talk *t, const struct jail_limits *limits);
bool test_gone(int pidfd);
bool test_has_rule(const struct jail_run *run, const char *rule);
long test_call(const struct jail_child *c, const char *word, bool first);
bool test_session(struct jail_template *tpl, const char *filter, struct jail_child *c);

#endif
