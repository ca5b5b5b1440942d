/* SPDX-License-Identifier: Apache-2.0 */
/* Notes about what a text holds beside its program.
 *
 * Takes:   what it is and where.
 * Gives:   the first of them in the source's list, and the number of all.
 * Never:   fails, or keeps more than INTAKE_NOTES.
 * Runs in: `cordon`.
 */
#ifndef INTAKE_NOTES_H
#define INTAKE_NOTES_H

#include "intake/intake.h"

void intake_note(struct intake_source *s, enum intake_kind kind, size_t line, size_t lines,
                 const char *detail);

#endif
