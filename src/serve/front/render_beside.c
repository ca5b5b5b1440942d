/* SPDX-License-Identifier: Apache-2.0 */
/* What the result of a run says beside its output, as lines that a model reads: what was taken from the text that was sent, how the program ran,
 * what came of its workspace, and that a list is longer than what is shown of it. Clients that show only the text lose nothing by it; `cordon run`
 * tells the same on standard error. */
#include "serve/front/inside.h"

/* What was sent may be more than the program: a fence, prose, reasoning. */
static void add_intake(struct serve_text *t, const json_t *o)
{
    const json_t *in = json_object_get(o, "intake"), *notes = json_object_get(in, "notes"), *v;
    const long long more =
        serve_member_number(in, "notes_total") - (long long)json_array_size(notes);
    size_t i;
    if (serve_member_number(in, "blocks"))
        serve_text_add(t, "note: of what was sent, %lld block%s of code ran, from line %lld\n",
                       serve_member_number(in, "blocks"),
                       serve_member_number(in, "blocks") > 1 ? "s" : "",
                       serve_member_number(in, "line"));
    json_array_foreach(notes, i, v)
        serve_text_add(t, "note: what was sent has, at line %lld: %s%s%s\n",
                       serve_member_number(v, "line"), serve_member_text(v, "what"),
                       *serve_member_text(v, "detail") ? " " : "", serve_member_text(v, "detail"));
    if (more > 0)
        serve_text_add(t, "note: and %lld more of that\n", more);
}

static void add_notes(struct serve_text *t, const json_t *o)
{
    const json_t *v;
    size_t i;
    json_array_foreach(json_object_get(o, "notes"), i, v)
        serve_text_add(t, "note: %s\n", json_is_string(v) ? json_string_value(v) : "?");
}

static void add_snapshot(struct serve_text *t, const json_t *o)
{
    const json_t *s = json_object_get(o, "snapshot"), *v;
    const char *name = serve_member_text(s, "workspace");
    size_t i;
    if (!json_is_object(s))
        return;
    if (*serve_member_text(s, "id"))
        serve_text_add(t, "snapshot: %s of workspace %s%s\n", serve_member_text(s, "id"), name,
                       json_is_true(json_object_get(s, "changed")) ? "" : ", as it was");
    if (*serve_member_text(s, "reason"))
        serve_text_add(t, "note: workspace %s: %s\n", name, serve_member_text(s, "reason"));
    if (serve_member_number(s, "used_percent"))
        serve_text_add(t, "note: workspace %s uses %lld %% of the room for its store\n", name,
                       serve_member_number(s, "used_percent"));
    json_array_foreach(json_object_get(s, "left_out"), i, v)
        serve_text_add(t, "note: workspace %s: left out: %s: %s\n", name,
                       serve_member_text(v, "path"), serve_member_text(v, "reason"));
}

void serve_render_beside(struct serve_text *t, const json_t *o)
{
    const json_t *list = json_object_get(o, "violations");
    const long long all = serve_member_number(o, "violations_total");
    add_intake(t, o);
    add_notes(t, o);
    if (all > (long long)json_array_size(list))
        serve_text_add(t, "note: of %lld violations the first are told\n", all);
    if (json_is_true(json_object_get(o, "files_truncated")))
        serve_text_add(t, "note: there are more files than are told\n");
    add_snapshot(t, o);
}
