/* SPDX-License-Identifier: Apache-2.0 */
/* What the official conformance suite of the protocol wants to find on a server: tools, prompts and resources with fixed
 * answers. They take the place of the real ones, so that nothing can be run by a server that was started for the suite; all
 * below them (HTTP, eras, headers, streams, sessions, questions) is what real clients get. */
#include "serve/front/inside.h"

#include <stdio.h>
#include <string.h>

#define PNG                                                                                        \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Erk"   \
    "Jggg=="
#define WAV     "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
#define TEXT(s) "{\"type\": \"text\", \"text\": \"" s "\"}"
#define IMAGE   "{\"type\": \"image\", \"data\": \"" PNG "\", \"mimeType\": \"image/png\"}"
#define NO_ARGS "{\"type\": \"object\", \"properties\": {}}"
#define STRING(k)                                                                                  \
    "{\"type\": \"object\", \"properties\": {\"" k                                                 \
    "\": {\"type\": \"string\"}}, \"required\": [\"" k "\"]}"
#define FORM(m, p)                                                                                 \
    "{\"message\": \"" m "\", \"requestedSchema\": {\"type\": \"object\", \"properties\": {" p "}" \
    "}"                                                                                            \
    "}"
#define SLOW                                                                                       \
    "{\"type\": \"object\", \"properties\": {\"seconds\": {\"type\": \"number\"}, \"label\": "     \
    "{\"type\": \"string\"}}}"
#define ELICIT "elicitation/create"
#define SAMPLE "sampling/createMessage"
#define SAMPLING(t, n)                                                                             \
    "{\"messages\": [{\"role\": \"user\", \"content\": " TEXT(t) "}], \"maxTokens\": " n "}"

/* ---- tools ---- */

struct tool;
typedef void run_fn(struct serve_front *f, struct serve_message *m, const struct tool *t);
struct tool {
    const char *name, *schema, *content; /* content: what it gives; NULL: run decides */
    bool error;
    run_fn *run;
    const char *method, *params; /* of the question of an older revision */
};

#define HEADER_SCHEMA                                                                              \
    "{\"type\": \"object\", \"properties\": {\"region\": {\"type\": \"string\", "                  \
    "\"x-mcp-header\": \"Region\"}}, \"required\": [\"region\"]}"
#define WIDE_SCHEMA                                                                                \
    "{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"type\": \"object\", "       \
    "\"$defs\": {\"address\": {\"$anchor\": \"addressDef\", \"type\": \"object\", "                \
    "\"properties\": {\"street\": {\"type\": \"string\"}, \"city\": {\"type\": \"string\"}}}}, "   \
    "\"properties\": {\"name\": {\"type\": \"string\"}, \"address\": {\"$ref\": "                  \
    "\"#/$defs/address\"}, \"contactMethod\": {\"type\": \"string\", \"enum\": [\"phone\", "       \
    "\"email\"]}, \"phone\": {\"type\": \"string\"}, \"email\": {\"type\": \"string\"}}, "         \
    "\"allOf\": [{\"anyOf\": [{\"required\": [\"phone\"]}, {\"required\": [\"email\"]}]}], "       \
    "\"if\": {\"properties\": {\"contactMethod\": {\"const\": \"phone\"}}, \"required\": "         \
    "[\"contactMethod\"]}, \"then\": {\"required\": [\"phone\"]}, \"else\": {\"required\": "       \
    "[\"email\"]}, \"additionalProperties\": false}"

static run_fn says_region, progress, logging, ask_old, sample_old, elicit_old, ask_new,
    needs_sampling;
static const struct tool tools[] = {
    {"test_simple_text", NO_ARGS, TEXT("This is a simple text response for testing."),
     .error = false},
    {"test_image_content", NO_ARGS, IMAGE, .error = false},
    {"test_audio_content", NO_ARGS,
     "{\"type\": \"audio\", \"data\": \"" WAV "\", \"mimeType\": \"audio/wav\"}", .error = false},
    {"test_embedded_resource", NO_ARGS,
     "{\"type\": \"resource\", \"resource\": {\"uri\": \"test://embedded-resource\", \"mimeType\": "
     "\"text/plain\", \"text\": \"This is an embedded resource content.\"}}",
     .error = false},
    {"test_multiple_content_types", NO_ARGS,
     TEXT("Multiple content types test:") ", " IMAGE ", {\"type\": \"resource\", \"resource\": "
                                          "{\"uri\": \"test://mixed-content-resource\", "
                                          "\"mimeType\": \"application/json\", \"text\": "
                                          "\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\"}}",
     .error = false},
    {"test_error_handling", NO_ARGS, TEXT("This tool intentionally returns an error for testing"),
     .error = true},
    {"greet", STRING("name"), TEXT("?"), .error = false}, /* from here: conformance_tasks.c */
    {"slow_compute", SLOW, TEXT("?"), .error = false},
    {"failing_job", NO_ARGS, TEXT("?"), .error = false},
    {"protocol_error_job", NO_ARGS, TEXT("?"), .error = false},
    {"confirm_delete", NO_ARGS, TEXT("?"), .error = false},
    {"multi_input", NO_ARGS, TEXT("?"), .error = false},
    {"test_tool_with_task", NO_ARGS, TEXT("?"), .error = false},
    {"json_schema_2020_12_tool", WIDE_SCHEMA, TEXT("done"), .error = false},
    {"test_header_parameter", HEADER_SCHEMA, NULL, .run = says_region},
    {"test_tool_with_progress", NO_ARGS, NULL, .run = progress},
    {"test_tool_with_logging", NO_ARGS, NULL, .run = logging},
    {"test_logging_tool", NO_ARGS, NULL, .run = logging},
    {"test_sampling", STRING("prompt"), NULL, .run = sample_old},
    {"test_elicitation", STRING("message"), NULL, .run = elicit_old},
    {"test_elicitation_sep1034_defaults", NO_ARGS, NULL, .run = ask_old, .method = ELICIT,
     .params = FORM("Please confirm",
                    "\"name\": {\"type\": \"string\", \"default\": \"John Doe\"}, "
                    "\"age\": {\"type\": \"integer\", \"default\": 30}, "
                    "\"score\": {\"type\": \"number\", \"default\": 95.5}, "
                    "\"status\": {\"type\": \"string\", \"enum\": [\"active\", \"inactive\", "
                    "\"pending\"], \"default\": \"active\"}, "
                    "\"verified\": {\"type\": \"boolean\", \"default\": true}")},
    {"test_elicitation_sep1330_enums", NO_ARGS, NULL, .run = ask_old, .method = ELICIT,
     .params = FORM(
         "Please choose",
         "\"untitledSingle\": {\"type\": \"string\", \"enum\": [\"option1\", \"option2\", "
         "\"option3\"]}, \"titledSingle\": {\"type\": \"string\", \"oneOf\": [{\"const\": "
         "\"value1\", \"title\": \"First Option\"}, {\"const\": \"value2\", \"title\": \"Second "
         "Option\"}, {\"const\": \"value3\", \"title\": \"Third Option\"}]}, \"legacyEnum\": "
         "{\"type\": \"string\", \"enum\": [\"opt1\", \"opt2\", \"opt3\"], \"enumNames\": "
         "[\"Option One\", \"Option Two\", \"Option Three\"]}, \"untitledMulti\": {\"type\": "
         "\"array\", \"items\": {\"type\": \"string\", \"enum\": [\"option1\", \"option2\", "
         "\"option3\"]}}, \"titledMulti\": {\"type\": \"array\", \"items\": {\"anyOf\": "
         "[{\"const\": \"value1\", \"title\": \"First Choice\"}, {\"const\": \"value2\", "
         "\"title\": \"Second Choice\"}, {\"const\": \"value3\", \"title\": \"Third "
         "Choice\"}]}}")},
    {"test_missing_capability", NO_ARGS, NULL, .run = needs_sampling},
    {"test_streaming_elicitation", NO_ARGS, NULL, .run = ask_new},
    {"test_input_required_result_elicitation", NO_ARGS, NULL, .run = ask_new},
    {"test_input_required_result_sampling", NO_ARGS, NULL, .run = ask_new},
    {"test_input_required_result_list_roots", NO_ARGS, NULL, .run = ask_new},
    {"test_input_required_result_request_state", NO_ARGS, NULL, .run = ask_new},
    {"test_input_required_result_multiple_inputs", NO_ARGS, NULL, .run = ask_new},
    {"test_input_required_result_multi_round", NO_ARGS, NULL, .run = ask_new},
    {"test_input_required_result_tampered_state", NO_ARGS, NULL, .run = ask_new},
    {"test_input_required_result_capabilities", NO_ARGS, NULL, .run = ask_new},
};
static const struct tool prompt_that_asks = {"test_input_required_result_prompt", NULL, NULL,
                                             .run = ask_new};

/* What each of them asks for, in which round. */
static const struct input {
    const char *name;
    unsigned round;
    bool state;
    const char *key, *method, *able, *params;
} inputs[] = {
#define NAMED                                                                                      \
    "{\"message\": \"What is your name?\", \"requestedSchema\": {\"type\": \"object\", "           \
    "\"properties\": {\"name\": {\"type\": \"string\"}}, \"required\": [\"name\"]}}"
#define OK                                                                                         \
    "{\"message\": \"Please confirm\", \"requestedSchema\": {\"type\": \"object\", "               \
    "\"properties\": {\"ok\": {\"type\": \"boolean\"}}, \"required\": [\"ok\"]}}"
#define NAME(s) "test_input_required_result_" s
    {NAME("elicitation"), 0, false, "user_name", ELICIT, "elicitation", NAMED},
    {"test_streaming_elicitation", 0, false, "user_name", ELICIT, "elicitation", NAMED},
    {NAME("sampling"), 0, false, "capital_question", SAMPLE, "sampling",
     SAMPLING("What is the capital of France?", "100")},
    {NAME("list_roots"), 0, false, "client_roots", "roots/list", "roots", "{}"},
    {NAME("request_state"), 0, true, "confirm", ELICIT, "elicitation", OK},
    {NAME("tampered_state"), 0, true, "confirm", ELICIT, "elicitation", OK},
    {NAME("multiple_inputs"), 0, true, "user_name", ELICIT, "elicitation", NAMED},
    {NAME("multiple_inputs"), 0, true, "greeting", SAMPLE, "sampling",
     SAMPLING("Generate a greeting", "50")},
    {NAME("multiple_inputs"), 0, true, "client_roots", "roots/list", "roots", "{}"},
    {NAME("multi_round"), 0, true, "step1", ELICIT, "elicitation",
     "{\"message\": \"Step 1: What is your name?\", \"requestedSchema\": {\"type\": \"object\", "
     "\"properties\": {\"name\": {\"type\": \"string\"}}, \"required\": [\"name\"]}}"},
    {NAME("multi_round"), 1, true, "step2", ELICIT, "elicitation",
     "{\"message\": \"Step 2: What is your favorite color?\", \"requestedSchema\": {\"type\": "
     "\"object\", \"properties\": {\"color\": {\"type\": \"string\"}}, \"required\": "
     "[\"color\"]}}"},
    {NAME("capabilities"), 0, false, "user_name", ELICIT, "elicitation", NAMED},
    {NAME("capabilities"), 0, false, "greeting", SAMPLE, "sampling",
     SAMPLING("Generate a greeting", "50")},
    {NAME("prompt"), 0, false, "user_context", ELICIT, "elicitation",
     "{\"message\": \"What context should the prompt use?\", \"requestedSchema\": {\"type\": "
     "\"object\", \"properties\": {\"context\": {\"type\": \"string\"}}, \"required\": "
     "[\"context\"]}}"},
};
#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* ---- replies ---- */

static void content(struct serve_front *f, const struct serve_reply *to, const char *blocks,
                    bool error)
{
    struct serve_writing w;
    serve_reply_begin(f, to, &w);
    jsonw_open(&w.j, "content", '[');
    jsonw_raw(&w.j, NULL, blocks, strlen(blocks));
    jsonw_close(&w.j, ']');
    if (error)
        jsonw_bool(&w.j, "isError", true);
    serve_reply_end(f, to, &w);
}

static void say(struct serve_front *f, const struct serve_reply *to, const char *before,
                const json_t *value, bool error)
{
    char text[4000] = "";
    size_t n = value ? json_dumpb(value, text, sizeof text, JSON_ENCODE_ANY | JSON_COMPACT) : 0;
    struct buf all;
    buf_init(&all, 16 * KIB);
    const int r = buf_printf(&all, "%s%.*s", before, (int)(n < sizeof text ? n : 0), text);
    f->bad = f->bad ? f->bad : r;
    if (r == 0)
        serve_reply_tool(f, to, all.data, all.len, NULL, 0, error);
    buf_done(&all);
}

/* A result of one member, which is JSON. */
static void member(struct serve_front *f, const struct serve_message *m, const char *key,
                   const char *json, bool cached)
{
    struct serve_writing w;
    serve_reply_begin(f, &m->to, &w);
    if (key)
        jsonw_raw(&w.j, key, json, strlen(json));
    if (cached && m->modern) {
        jsonw_int(&w.j, "ttlMs", 60000);
        jsonw_string(&w.j, "cacheScope", "private");
    }
    serve_reply_end(f, &m->to, &w);
}

static const char *argument(const struct serve_message *m, const char *name)
{
    const char *s =
        json_string_value(json_object_get(json_object_get(m->params, "arguments"), name));
    return s ? s : "";
}

/* ---- tools that tell, and tools that ask ---- */

static void progress(struct serve_front *f, struct serve_message *m, const struct tool *t)
{
    char params[LIMIT_SERVE_ID + 100];
    (void)t;
    for (int i = 0; m->token[0] && i <= 100; i += 50) {
        snprintf(params, sizeof params, "{\"progressToken\": %s, \"progress\": %d, \"total\": 100}",
                 m->token, i);
        serve_reply_note(f, &m->to, "notifications/progress", params);
    }
    content(f, &m->to, TEXT("done"), false);
}

static void logging(struct serve_front *f, struct serve_message *m, const struct tool *t)
{
    static const char *const lines[] = {"Tool execution started", "Tool processing data",
                                        "Tool execution completed"};
    char params[100];
    (void)t;
    const json_t *level =
        json_object_get(json_object_get(m->params, "_meta"), SERVE_META "logLevel");
    for (size_t i = 0; (!m->modern || level) && i < COUNT(lines); i++) {
        snprintf(params, sizeof params, "{\"level\": \"info\", \"data\": \"%s\"}", lines[i]);
        serve_reply_note(f, &m->to, "notifications/message", params);
    }
    content(f, &m->to, TEXT("done"), false);
}

/* A parameter that the schema wants in a header, too. */
static void says_region(struct serve_front *f, struct serve_message *m, const struct tool *t)
{
    char why[300];
    (void)t;
    if (m->modern && m->to.sink->head &&
        !serve_http_says(m->to.sink->head, "mcp-param-region", argument(m, "region"), why))
        serve_reply_error(f, &m->to, SERVE_HEADER_MISMATCH, why);
    else
        content(f, &m->to, TEXT("done"), false);
}

static void answered(struct serve_front *f, const struct serve_asked *a, json_t *result)
{
    const struct tool *t = a->what;
    const char *said =
        json_string_value(json_object_get(json_object_get(result, "content"), "text"));
    char text[1000];
    snprintf(text, sizeof text, "LLM response: %.900s", said ? said : "");
    if (t->run == sample_old)
        serve_reply_tool(f, &a->to, text, strlen(text), NULL, 0, false);
    else
        say(f, &a->to,
            t->run == elicit_old ? "User response: "
                                 : "Elicitation completed: action=accept, content=",
            result, false);
}

static void ask(struct serve_front *f, struct serve_message *m, const struct tool *t,
                const char *method, const char *params)
{
    const bool able = strcmp(method, ELICIT) == 0 ? m->to.talk->elicits : m->to.talk->samples;
    if (m->modern || !able || m->to.batch)
        content(f, &m->to, TEXT("this client cannot be asked"), true);
    else if (!serve_asking_start(f, &m->to, method, params, answered, t))
        content(f, &m->to, TEXT("too many questions"), true);
}

static void ask_old(struct serve_front *f, struct serve_message *m, const struct tool *t)
{
    ask(f, m, t, t->method, t->params);
}

static void ask_with(struct serve_front *f, struct serve_message *m, const struct tool *t,
                     const char *method, const char *form)
{
    struct buf quoted, params;
    struct jsonw j = {.out = &quoted};
    buf_init(&quoted, 64 * KIB);
    buf_init(&params, 128 * KIB);
    jsonw_string(&j, NULL, argument(m, t->run == sample_old ? "prompt" : "message"));
    const char *hole = strchr(form, '@');
    if (j.bad == 0 &&
        buf_printf(&params, "%.*s%s%s", (int)(hole - form), form, quoted.data, hole + 1) == 0)
        ask(f, m, t, method, params.data);
    buf_done(&quoted);
    buf_done(&params);
}

static void sample_old(struct serve_front *f, struct serve_message *m, const struct tool *t)
{
    ask_with(f, m, t, SAMPLE,
             "{\"messages\": [{\"role\": \"user\", \"content\": {\"type\": \"text\", \"text\": "
             "@}}], \"maxTokens\": 100}");
}

static void elicit_old(struct serve_front *f, struct serve_message *m, const struct tool *t)
{
    ask_with(f, m, t, ELICIT,
             "{\"message\": @, \"requestedSchema\": {\"type\": \"object\", \"properties\": "
             "{\"username\": {\"type\": \"string\", \"description\": \"User's response\"}, "
             "\"email\": {\"type\": \"string\", \"description\": \"User's email address\"}}, "
             "\"required\": [\"username\", \"email\"]}}");
}

static bool can(const struct serve_message *m, const char *what)
{
    const json_t *able =
        json_object_get(json_object_get(m->params, "_meta"), SERVE_META "clientCapabilities");
    return json_object_get(able, what) != NULL;
}

static void needs_sampling(struct serve_front *f, struct serve_message *m, const struct tool *t)
{
    (void)t;
    if (can(m, "sampling"))
        content(f, &m->to, TEXT("done"), false);
    else
        serve_reply_error_data(f, &m->to, SERVE_NO_CAPABILITY,
                               "Missing required client capability: sampling",
                               "{\"requiredCapabilities\": {\"sampling\": {}}}");
}

/* ---- questions of the newest revision ---- */

static bool good_answer(const struct input *in, const json_t *answer)
{
    const char *action = json_string_value(json_object_get(answer, "action"));
    if (strcmp(in->method, ELICIT) == 0)
        return action && (strcmp(action, "accept") != 0 ||
                          json_is_object(json_object_get(answer, "content")));
    return strcmp(in->method, SAMPLE) == 0 ? json_object_get(answer, "content") != NULL
                                           : json_is_array(json_object_get(answer, "roots"));
}

/* The inputs of a round that the client can give and has not given; -1: there are none in it at all. */
static int missing(const struct serve_message *m, const struct tool *t, unsigned round,
                   struct jsonw *j, bool *ret_state)
{
    const json_t *responses = json_object_get(m->params, "inputResponses");
    int open = -1;
    for (size_t i = 0; i < COUNT(inputs); i++) {
        const struct input *in = &inputs[i];
        if (strcmp(in->name, t->name) != 0 || in->round != round || !can(m, in->able))
            continue;
        open = open < 0 ? 0 : open;
        *ret_state = in->state;
        if (good_answer(in, json_object_get(responses, in->key)))
            continue;
        open++;
        jsonw_open(j, in->key, '{');
        jsonw_string(j, "method", in->method);
        jsonw_raw(j, "params", in->params, strlen(in->params));
        jsonw_close(j, '}');
    }
    return open;
}

static void require(struct serve_front *f, struct serve_message *m, const struct tool *t,
                    unsigned round, bool state, const char *requests)
{
    struct serve_writing w;
    serve_reply_begin_as(f, &m->to, &w, "input_required");
    jsonw_raw(&w.j, "inputRequests", requests, strlen(requests));
    if (state)
        jsonw_string(&w.j, "requestState", serve_state_new(f, t, round));
    serve_reply_end(f, &m->to, &w);
}

static void complete(struct serve_front *f, struct serve_message *m, const struct tool *t)
{
    const json_t *responses = json_object_get(m->params, "inputResponses");
    const char *name = json_string_value(json_object_get(
        json_object_get(json_object_get(responses, "user_name"), "content"), "name"));
    char before[300];
    snprintf(before, sizeof before, "state-ok Hello, %.200s! ", name ? name : "");
    if (t == &prompt_that_asks)
        member(f, m, "messages", "[{\"role\": \"user\", \"content\": " TEXT("with context") "}]",
               false);
    else
        say(f, &m->to, before, responses, false);
}

static void ask_new(struct serve_front *f, struct serve_message *m, const struct tool *t)
{
    const char *word = json_string_value(json_object_get(m->params, "requestState"));
    struct buf requests;
    struct jsonw j = {.out = &requests};
    unsigned round = 0;
    bool state = false;
    int open = 0;
    if (word && !serve_state_take(f, word, t, &round)) {
        serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS,
                          "requestState: not one that this server gave out, or used before");
        return;
    }
    buf_init(&requests, 64 * KIB);
    jsonw_open(&j, NULL, '{');
    for (; (open = missing(m, t, round, &j, &state)) == 0; round++) /* the next round */
        ;
    jsonw_close(&j, '}');
    if (open > 0)
        require(f, m, t, round, state, requests.data);
    else
        complete(f, m, t);
    buf_done(&requests);
}

static void call_tool(struct serve_front *f, struct serve_message *m)
{
    const char *name = json_string_value(json_object_get(m->params, "name"));
    if (serve_conformance_task(f, m, name ? name : ""))
        return;
    for (size_t i = 0; name && i < COUNT(tools); i++) {
        if (strcmp(tools[i].name, name) != 0)
            continue;
        if (tools[i].content)
            content(f, &m->to, tools[i].content, tools[i].error);
        else
            tools[i].run(f, m, &tools[i]);
        return;
    }
    serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS, "Unknown tool");
}

static void list_tools(struct serve_front *f, struct serve_message *m)
{
    struct buf list;
    struct jsonw j = {.out = &list};
    buf_init(&list, 256 * KIB);
    jsonw_open(&j, NULL, '[');
    for (size_t i = 0; i < COUNT(tools); i++) {
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "name", tools[i].name);
        jsonw_string(&j, "description", "for the conformance suite");
        jsonw_raw(&j, "inputSchema", tools[i].schema, strlen(tools[i].schema));
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, ']');
    if (j.bad == 0)
        member(f, m, "tools", list.data, true);
    buf_done(&list);
}

/* ---- prompts ---- */

#define USER(c) "{\"role\": \"user\", \"content\": " c "}"
#define PROMPTS                                                                                    \
    "[{\"name\": \"test_simple_prompt\", \"description\": \"simple\"}, {\"name\": "                \
    "\"test_prompt_with_arguments\", \"description\": \"with arguments\", \"arguments\": "         \
    "[{\"name\": \"arg1\", \"description\": \"First test argument\", \"required\": true}, "        \
    "{\"name\": \"arg2\", \"description\": \"Second test argument\", \"required\": true}]}, "      \
    "{\"name\": \"test_prompt_with_embedded_resource\", \"description\": \"with a resource\", "    \
    "\"arguments\": [{\"name\": \"resourceUri\", \"description\": \"URI of the resource\", "       \
    "\"required\": true}]}, {\"name\": \"test_prompt_with_image\", \"description\": \"with an "    \
    "image\"}, {\"name\": \"test_input_required_result_prompt\", \"description\": \"asks\"}]"

static void get_prompt(struct serve_front *f, struct serve_message *m)
{
    const char *name = json_string_value(json_object_get(m->params, "name"));
    struct buf text;
    struct jsonw j = {.out = &text};
    buf_init(&text, 64 * KIB);
    name = name ? name : "";
    jsonw_open(&j, NULL, '[');
    if (strcmp(name, "test_simple_prompt") == 0) {
        member(f, m, "messages", "[" USER(TEXT("This is a simple prompt for testing.")) "]", false);
    } else if (strcmp(name, "test_prompt_with_image") == 0) {
        member(f, m, "messages",
               "[" USER(IMAGE) ", " USER(TEXT("Please analyze the image above.")) "]", false);
    } else if (strcmp(name, prompt_that_asks.name) == 0) {
        ask_new(f, m, &prompt_that_asks);
    } else if (strcmp(name, "test_prompt_with_arguments") == 0) {
        char line[1000];
        snprintf(line, sizeof line, "Prompt with arguments: arg1='%.400s', arg2='%.400s'",
                 argument(m, "arg1"), argument(m, "arg2"));
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "role", "user");
        jsonw_open(&j, "content", '{');
        jsonw_string(&j, "type", "text");
        jsonw_string(&j, "text", line);
        jsonw_close(&j, '}');
        jsonw_close(&j, '}');
        jsonw_close(&j, ']');
        member(f, m, "messages", text.data, false);
    } else if (strcmp(name, "test_prompt_with_embedded_resource") == 0) {
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "role", "user");
        jsonw_open(&j, "content", '{');
        jsonw_string(&j, "type", "resource");
        jsonw_open(&j, "resource", '{');
        jsonw_string(&j, "uri", argument(m, "resourceUri"));
        jsonw_string(&j, "mimeType", "text/plain");
        jsonw_string(&j, "text", "Embedded resource content for testing.");
        jsonw_close(&j, '}');
        jsonw_close(&j, '}');
        jsonw_close(&j, '}');
        jsonw_raw(&j, NULL, USER(TEXT("Please process the embedded resource above.")),
                  strlen(USER(TEXT("Please process the embedded resource above."))));
        jsonw_close(&j, ']');
        member(f, m, "messages", text.data, false);
    } else {
        serve_reply_error(f, &m->to, SERVE_INVALID_PARAMS, "Unknown prompt");
    }
    buf_done(&text);
}

/* ---- resources ---- */

#define RESOURCES                                                                                  \
    "[{\"uri\": \"test://static-text\", \"name\": \"Static text\", \"description\": \"text\", "    \
    "\"mimeType\": \"text/plain\"}, {\"uri\": \"test://static-binary\", \"name\": \"Static "       \
    "binary\", \"description\": \"an image\", \"mimeType\": \"image/png\"}, {\"uri\": "            \
    "\"test://watched-resource\", \"name\": \"Watched\", \"description\": \"text\", "              \
    "\"mimeType\": \"text/plain\"}]"
#define TEMPLATES                                                                                  \
    "[{\"uriTemplate\": \"test://template/{id}/data\", \"name\": \"Template\", \"description\": "  \
    "\"data of an id\", \"mimeType\": \"application/json\"}]"

static void no_resource(struct serve_front *f, struct serve_message *m, const char *uri)
{
    struct buf data;
    struct jsonw j = {.out = &data};
    buf_init(&data, 16 * KIB);
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "uri", uri);
    jsonw_close(&j, '}');
    serve_reply_error_data(f, &m->to, m->modern ? SERVE_INVALID_PARAMS : -32002,
                           "Resource not found", j.bad ? NULL : data.data);
    buf_done(&data);
}

static void read_resource(struct serve_front *f, struct serve_message *m)
{
    const char *uri = json_string_value(json_object_get(m->params, "uri"));
    char id[64], text[600];
    uri = uri ? uri : "";
    if (strcmp(uri, "test://static-text") == 0 || strcmp(uri, "test://watched-resource") == 0) {
        snprintf(text, sizeof text,
                 "[{\"uri\": \"%s\", \"mimeType\": \"text/plain\", \"text\": \"This is the content "
                 "of the static text resource.\"}]",
                 uri);
        member(f, m, "contents", text, true);
    } else if (strcmp(uri, "test://static-binary") == 0) {
        member(f, m, "contents",
               "[{\"uri\": \"test://static-binary\", \"mimeType\": \"image/png\", \"blob\": "
               "\"" PNG "\"}]",
               true);
    } else if (sscanf(uri, "test://template/%60[a-zA-Z0-9]/data", id) == 1 &&
               strcmp(uri + 16 + strlen(id), "/data") == 0) {
        snprintf(text, sizeof text,
                 "[{\"uri\": \"%s\", \"mimeType\": \"application/json\", \"text\": "
                 "\"{\\\"id\\\":\\\"%s\\\",\\\"templateTest\\\":true,\\\"data\\\":\\\"Data for ID: "
                 "%s\\\"}\"}]",
                 uri, id, id);
        member(f, m, "contents", text, true);
    } else {
        no_resource(f, m, uri);
    }
}

/* ---- methods ---- */

static void list_prompts(struct serve_front *f, struct serve_message *m)
{
    member(f, m, "prompts", PROMPTS, true);
}

static void list_resources(struct serve_front *f, struct serve_message *m)
{
    member(f, m, "resources", RESOURCES, true);
}

static void list_templates(struct serve_front *f, struct serve_message *m)
{
    member(f, m, "resourceTemplates", TEMPLATES, true);
}

static void complete_argument(struct serve_front *f, struct serve_message *m)
{
    member(f, m, "completion",
           "{\"values\": [\"paris\", \"park\"], \"total\": 2, \"hasMore\": false}", false);
}

static void nothing(struct serve_front *f, struct serve_message *m)
{
    member(f, m, NULL, NULL, false);
}

static const struct {
    const char *name;
    void (*run)(struct serve_front *f, struct serve_message *m);
    bool legacy; /* only there */
} methods[] = {
    {"tools/list", list_tools, false},         {"tools/call", call_tool, false},
    {"prompts/list", list_prompts, false},     {"prompts/get", get_prompt, false},
    {"resources/list", list_resources, false}, {"resources/templates/list", list_templates, false},
    {"resources/read", read_resource, false},  {"completion/complete", complete_argument, false},
    {"resources/subscribe", nothing, true},    {"resources/unsubscribe", nothing, true},
    {"logging/setLevel", nothing, true},
};

bool serve_conformance(struct serve_front *f, struct serve_message *m)
{
    if (strncmp(m->method, "tasks/", 6) == 0)
        return serve_conformance_task(f, m, NULL);
    for (size_t i = 0; i < COUNT(methods); i++)
        if (strcmp(methods[i].name, m->method) == 0 && (!methods[i].legacy || !m->modern)) {
            methods[i].run(f, m);
            return true;
        }
    return false;
}

void serve_conformance_capabilities(struct jsonw *j, enum serve_version v)
{
    static const char *const names[] = {"prompts", "completions", "logging"};
    for (size_t i = 0; i < COUNT(names); i++) {
        jsonw_open(j, names[i], '{');
        jsonw_close(j, '}');
    }
    jsonw_open(j, "resources", '{');
    if (v < SERVE_2026_07_28)
        jsonw_bool(j, "subscribe", true);
    jsonw_close(j, '}');
}
