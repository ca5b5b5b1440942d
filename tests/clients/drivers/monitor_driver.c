/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor of include/cordon.h, for tests/clients/monitors.py: monitor_driver OPTIONS < EVENTS. OPTIONS is a JSON object; events
 * are those of `cordon monitor --format events` that are our own. Prints the verdict, first as the library writes it, then what
 * the struct says. */
#include "cordon.h"

#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTINGS_MAX = 16, LOGITS_MAX = 4096 };

static struct cordon_monitor *made(const json_t *o)
{
    static char words[SETTINGS_MAX][64];
    static const char *list[SETTINGS_MAX + 1];
    char why[CORDON_WHY_MAX] = "";
    struct cordon_monitor_options options = {
        .tier = json_string_value(json_object_get(o, "tier")),
        .task = json_string_value(json_object_get(o, "task")),
        .mode = json_string_value(json_object_get(o, "mode")),
        .expected = (uint64_t)json_integer_value(json_object_get(o, "expected")),
        .vocabulary = (uint64_t)json_integer_value(json_object_get(o, "vocabulary")),
        .settings = list};
    const char *name;
    json_t *value;
    size_t count = 0;
    json_object_foreach(json_object_get(o, "settings"), name, value)
    {
        snprintf(words[count], sizeof words[count], "%s=%s", name, json_string_value(value));
        list[count] = words[count];
        count++;
    }
    struct cordon_monitor *m = NULL;
    if (cordon_monitor_new(&options, &m, why) == CORDON_MONITOR_GO_ON)
        return m;
    printf("refused: %s\n", why);
    exit(1);
}

static int take(struct cordon_monitor *m, const json_t *event)
{
    static float logits[LOGITS_MAX];
    static double top[LOGITS_MAX];
    const json_t *text = json_object_get(event, "text"), *l = json_object_get(event, "logits"),
                 *p = json_object_get(event, "top_logprobs");
    struct cordon_token t = {.text = json_string_value(text),
                             .len = json_string_length(text),
                             .id = (uint64_t)json_integer_value(json_object_get(event, "token")),
                             .logit_count = json_array_size(l),
                             .top_count = json_array_size(p)};
    for (size_t i = 0; i < t.logit_count; i++)
        logits[i] = (float)json_number_value(json_array_get(l, i));
    for (size_t i = 0; i < t.top_count; i++)
        top[i] = json_number_value(json_array_get(p, i));
    t.logits = l ? logits : NULL;
    t.top_logprobs = p ? top : NULL;
    return cordon_monitor_token(m, &t);
}

int main(int argc, char **argv)
{
    static char line[1 << 20], out[16384];
    setlocale(LC_ALL, ""); /* whoever links a library may: numbers must stay numbers of JSON */
    json_t *o = argc > 1 ? json_loads(argv[1], 0, NULL) : NULL;
    struct cordon_monitor *m = made(o);
    int status = CORDON_MONITOR_GO_ON;
    while (fgets(line, sizeof line, stdin) && status != CORDON_MONITOR_ABORT) {
        json_t *event = json_loads(line, 0, NULL);
        status = take(m, event);
        if (status == CORDON_MONITOR_ARGUMENT)
            puts("no distribution");
        json_decref(event);
    }
    cordon_monitor_end(m);
    struct cordon_verdict v;
    cordon_monitor_verdict(m, &v);
    size_t len = cordon_monitor_json(m, out, sizeof out);
    puts(out);
    printf("{\"abort\": %s, \"reason\": \"%s\", \"detector\": \"%s\", \"tokens\": %llu, ",
           v.abort ? "true" : "false", cordon_abort_reason_name(v.reason),
           cordon_detector_name(v.detector), (unsigned long long)v.tokens);
    printf("\"whole\": %s, \"between\": %s}\n", len == strlen(out) ? "true" : "false",
           v.entropy_low <= v.entropy && v.entropy <= v.entropy_high ? "true" : "false");
    cordon_monitor_free(m);
    json_decref(o);
    return 0;
}
