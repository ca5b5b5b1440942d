/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures that a block leaves, shown where the terminal can show them, else named; or told as events.
 *
 * Takes:   how this terminal takes pictures, the files of a session, the result that lists them.
 * Gives:   the pictures on standard output, each with a line that says where its file is.
 * Never:   decodes one itself (cordon-image does); writes a byte of a guest's to the terminal.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_IMAGES_H
#define PROG_CORDON_IMAGES_H

#include "base/buf.h"
#include "base/err.h"
#include "flow/flow.h"

enum images { IMAGES_NAMED, IMAGES_KITTY, IMAGES_ITERM, IMAGES_SIXEL };

/* WORD: what --images said; NULL or auto: by what the terminal says of itself. */
ERR_MUST_USE int images_choose(const char *word, enum images *ret, struct err *err);

/* Whether cordon-image reads files of TYPE, which may be NULL. */
bool images_can_show(const char *type);

/* For --events: each picture that the result lists, scaled, as an event of its own; and one file PATH of /workspace, which is
 * told as SHOWN: false, it cannot be shown. */
void images_events(int files, const struct flow_result *result);
bool images_event(int workspace, const char *path, const char *shown);

/* FILES: the file system of SESSION. */
void images_show(enum images how, int files, const char *session, const struct flow_result *result);

#endif
