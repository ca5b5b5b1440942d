/* SPDX-License-Identifier: Apache-2.0 */
/* The reader: the built-in table against its file, every kind of mistake with its place, what a file changes and
 * what it leaves, profiles, and that what is shown reads back as the same. argv[1]: the folder policies/. */
#include "base/limits.h"
#include "base/tap.h"
#include "policy/check.h"
#include "policy/load.h"
#include "policy/show.h"

static const char *folder;

static bool role_may(const struct policy_role *role, const char *tool)
{
    return policy_words_have(&role->tools, "*") || policy_words_have(&role->tools, tool);
}

static char *read_file(const char *name, size_t *ret_len)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    char *data = calloc(1, MIB);
    *ret_len = f && data ? fread(data, 1, MIB - 1, f) : 0;
    if (f)
        fclose(f);
    return data;
}

static void show_text(const struct policy *p, const char *part, bool origin, struct buf *out)
{
    bool found = false;
    buf_init(out, 16 * MIB);
    if (policy_show_yaml(p, part, origin, out, &found) < 0 || !found)
        printf("# nothing to show\n");
    if (!out->data && buf_add(out, "", 0) < 0)
        abort();
}

static struct policy_box *load(const char *text, struct policy_problems *problems)
{
    struct policy_box *box = policy_box_new();
    policy_problems_init(problems);
    if (policy_box_load(box, "f.yaml", text, strlen(text), problems) < 0)
        abort();
    policy_box_check(box, problems);
    for (size_t i = 0; i < problems->count && problems->count < 4; i++)
        printf("# %u:%u: %s\n", problems->items[i].line, problems->items[i].column,
               problems->items[i].text);
    return box;
}

/* ---- the built-in policy ---- */

static void builtin(void)
{
    size_t len;
    char *text = read_file("default.yaml", &len);
    struct policy_problems problems;
    struct buf table, file;
    struct policy_box *box = load(text, &problems);
    tap_ok(len > 1000 && problems.errors == 0,
           "policies/default.yaml has no errors for the reader");
    tap_eq_int(problems.count, 0, "policies/default.yaml has no warnings for the reader");
    show_text(&policy_builtin, NULL, false, &table);
    show_text(&box->p, NULL, false, &file);
    tap_ok(table.len > 20000 && strcmp(table.data, file.data) == 0,
           "the table that was compiled in says what the file says");
    size_t missing = 0;
    for (size_t i = 0; i < policy_nkeys; i++)
        missing += box->origins[i].file != 1;
    tap_eq_int(missing, 0, "each key of the table is in the file");
    buf_done(&table);
    buf_done(&file);
    policy_box_free(box);
    policy_problems_done(&problems);
    free(text);

    const struct policy *p = &policy_builtin;
    tap_ok(p->limits.timeout_ms == LIMIT_WALL_MS && p->limits.cpu_ms == LIMIT_CPU_MS &&
               p->limits.memory == LIMIT_MEMORY && p->limits.descriptors == LIMIT_DESCRIPTORS &&
               p->limits.disk == LIMIT_DISK && p->limits.inodes == LIMIT_INODES &&
               p->limits.processes == LIMIT_PROCESSES && p->limits.threads == LIMIT_THREADS &&
               p->limits.output == LIMIT_OUTPUT && p->flood_factor == LIMIT_FLOOD_FACTOR,
           "the default limits are those of base/limits.h");
    tap_ok(p->sessions.timeout_ms == 120000 && p->sessions.output == 100000 &&
               p->sessions.tool_calls == 50 && p->sessions.file_read == 50000 &&
               p->sessions.grep_matches == 100,
           "sessions have their documented defaults");
    tap_ok(p->workspaces.free == GIB && p->workspaces.free_percent == 5,
           "of a disk 5 %% are kept free, and 1 GB, by default");
    tap_ok(p->rates.executions == 100 && p->rates.window_ms == 60000 && p->rates.concurrent == 10 &&
               p->breakers.failures == 3 && p->breakers.cooldown_ms == 60000 &&
               p->approval.mode == POLICY_AUTONOMOUS && p->approval.every_n == 5 &&
               p->approval.iterations == 50 && !p->arena.enabled && p->output.guarded_cap == 8192 &&
               p->audit.retention_days == 90 && p->audit.failures == 10 &&
               p->audit.slow_factor == 10 && p->audit.slow_records == 5 &&
               p->audit.violations == 3 && p->audit.window_ms == 3600000 &&
               p->escalation.retries == 2,
           "rates, breakers, approval, arena, audit and escalation have their defaults");
    tap_ok(strcmp(p->run.profile, "strict") == 0 && strcmp(p->run.role, "execute") == 0,
           "the default profile is strict, the default role execute");
    const struct policy_role *explore = policy_find_role(p, "explore");
    tap_ok(explore && role_may(explore, "Find") && !role_may(explore, "Jq") &&
               !role_may(explore, "WriteFile") && role_may(policy_find_role(p, "execute"), "x"),
           "the roles explore and execute have their tools");
    tap_ok(policy_find_tool(p, "Edit")->risk == POLICY_RISK_MEDIUM &&
               policy_find_tool(p, "ModifyGoal")->risk == POLICY_RISK_HIGH &&
               !policy_find_tool(p, "no"),
           "Edit is of medium risk, ModifyGoal of high risk");
    tap_ok(!policy_escapes_html(p, policy_find_profile(p, "strict")) &&
               !policy_escapes_html(p, policy_find_profile(p, "standard")) &&
               !policy_escapes_html(p, NULL),
           "by default no profile escapes text in results");
}

static void shipped(void)
{
    static const char *const names[] = {"max-safety.yaml", "production.yaml"};
    for (size_t i = 0; i < 2; i++) {
        size_t len;
        char *text = read_file(names[i], &len);
        struct policy_problems problems;
        struct policy_box *box = load(text, &problems);
        tap_ok(len > 100 && problems.errors == 0, "%s has no errors", names[i]);
        tap_ok(problems.count == 1 && strstr(problems.items[0].text, "no upstreams"),
               "a shipped policy warns that its judges have no model to ask");
        const struct policy *p = &box->p;
        tap_ok(p->arena.enabled && p->approval.iterations == 50 &&
                   p->approval.mode == (i ? POLICY_HITL : POLICY_EVERY_N) &&
                   p->approval.every_n == 5 && p->run.profiles.count == 1,
               "%s has the arena on, 50 iterations and one profile", names[i]);
        policy_box_free(box);
        policy_problems_done(&problems);
        free(text);
    }
}

/* ---- mistakes ---- */

static void mistakes(void)
{
    static const struct {
        const char *yaml;
        unsigned line, column;
        const char *say; /* a part of what is said */
    } rows[] = {
        {"limts:\n  timeout: 3s\n", 1, 1, "unknown key 'limts'; did you mean 'limits'?"},
        {"limits:\n  timout: 3s\n", 2, 3,
         "unknown key 'timout'; did you mean 'timeout'? (limits has timeout, cpu"},
        {"zzz: 1\n", 1, 1,
         "unknown key 'zzz' (a policy has version, final, state, daemon, run, limits"},
        {"limits:\n  timeout: 3x\n", 2, 12, "limits.timeout: '3x' is not a duration: 30s"},
        {"limits: {memory: lots}\n", 1, 18, "limits.memory: 'lots' is not a size: 100, 64k, 512m"},
        {"limits: {threads: -1}\n", 1, 19, "limits.threads: '-1' is not a number"},
        {"limits: {memory: 1k}\n", 1, 18, "limits.memory: 1k is outside 4m to 1024g"},
        {"limits: {timeout: 999h}\n", 1, 19, "outside 1ms to 168h"},
        {"limits: {timeout: }\n", 1, 19, "limits.timeout: a value is missing"},
        {"limits: {timeout: ~}\n", 1, 19, "a value is missing"},
        {"limits: {timeout: [1]}\n", 1, 19, "a single value is wanted, not a list"},
        {"limits: [timeout]\n", 1, 9, "limits: a mapping of keys is wanted, not a list"},
        {"limits: 3\n", 1, 9, "a mapping of keys is wanted, not a single value"},
        {"- limits\n", 1, 1, "a policy: a mapping of keys is wanted, not a list"},
        {"run:\n  mode: ful\n", 2, 9,
         "run.mode: 'ful' is none of full, landlock; did you mean 'full'?"},
        {"run: {language: cobol}\n", 1, 17, "'cobol' is not python, the only value"},
        {"arena: {enabled: yes}\n", 1, 18, "arena.enabled: 'yes' is neither true nor false"},
        {"run: {profiles: strict}\n", 1, 17,
         "run.profiles: a list is wanted, [a, b], not a single value"},
        {"workspaces: {commit: always}\n", 1, 22,
         "workspaces.commit: 'always' is none of never, ok, ended"},
        {"search: {collections: [a=b]}\n", 1, 10,
         "search.collections: 'a=b' names no folder by an absolute path"},
        {"search: {collections: [/srv/docs]}\n", 1, 10, "is no NAME=/path of a collection"},
        {"search: {collections: [a=/x, a=/y]}\n", 1, 10,
         "'a=/y' has a name that another collection has"},
        {"search: {collections: [a=/x/../y]}\n", 1, 10, "has a name .. in its path"},
        {"breakers:\n  counts:\n    - error\n    - tmeout\n", 4, 7,
         "'tmeout' is none of error, timeout"},
        {"run: {profiles: [strict, \"\"]}\n", 1, 26, "an empty word"},
        {"run: {role: a b}\n", 1, 13, "'a b' is no name"},
        {"audit: {alert_file: a/b}\n", 1, 21, "'a/b' is no absolute path"},
        {"limits: {cpu: 1s, cpu: 2s}\n", 1, 19, "'cpu' comes twice; the first is in line 1"},
        {"limits:\n  cpu: 1s\nrun:\n  mode: full\nlimits:\n  cpu: 2s\n", 5, 1,
         "'limits' comes twice; the first is in line 1"},
        {"version: 2\n", 1, 10, "version: 2 is outside 1 to 1"},
        {"limits: &a {cpu: 1s}\n", 1, 9, "a YAML anchor"},
        {"limits:\n  cpu: *a\n", 2, 8, "a YAML alias"},
        {"limits: !x {cpu: 1s}\n", 1, 9, "a YAML tag"},
        {"limits: {cpu: !!str 1s}\n", 1, 15, "a YAML tag"},
        {"version: 1\n---\nversion: 1\n", 2, 1, "a second YAML document"},
        {"limits: {cpu: 1s\n", 2, 1, "YAML: "},
        {"limits:\n\tcpu: 1s\n", 2, 1,
         "YAML: a tab where a key or value begins; indent with blanks"},
        {"? [a]\n: b\n", 1, 3, "a key must be a word"},
        {"a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: {l: {m: 1}}}}}}}}}}}}\n", 1, 48,
         "nested deeper"},
        {"roles:\n  boss: {tols: [a]}\n", 2, 10,
         "unknown key 'tols'; did you mean 'tools'? (a role has tools)"},
        {"roles: {\"a b\": {tools: []}}\n", 1, 9, "'a b' is no name for a role"},
        {"roles: {a: {tools: x}}\n", 1, 20, "a list is wanted"},
        {"tools: {run: {risk: hgh}}\n", 1, 21,
         "'hgh' is none of low, medium, high, critical; did you mean 'high'?"},
        {"tools: {run: {risk: high, approval: yes}}\n", 1, 37,
         "approval of a tool: 'yes' is neither true nor false"},
        {"tools: {run: high}\n", 1, 14, "a tool: a mapping of keys is wanted"},
        {"tools: {ocr: {approval: true}}\n", 1, 9, "tool ocr: its risk is missing"},
        {"tools: {ocr: {risk: low, command: [sh], schema: {type: object}}}\n", 1, 35,
         "the program needs its absolute path"},
        {"tools: {ocr: {risk: low, command: [/x]}}\n", 1, 14,
         "the schema of its arguments is missing"},
        {"tools: {ocr: {risk: low, schema: {type: object}}}\n", 1, 26, "is for a tool of yours"},
        {"tools: {ReadFile: {command: [/x], schema: {type: object}}}\n", 1, 29,
         "tool ReadFile is built in"},
        {"tools: {o-c-r: {risk: low, command: [/x], schema: {type: object}}}\n", 1, 37,
         "no name for a function"},
        {"tools: {llm: {risk: low, command: [/x], schema: {type: object}}}\n", 1, 35,
         "tool llm is built in"},
        {"tools: {ocr: {risk: low, command: [/x], schema: {type: string}}}\n", 1, 49,
         "a mapping is wanted: {type: object"},
        {"tools: {ocr: {risk: low, command: [/x], schema: {type: object, pattern: x}}}\n", 1, 64,
         "'pattern' is not checked here"},
        {"tools: {ocr: {risk: low, command: [/x], schema: {type: object, properties: {a: {}}}}}\n",
         1, 80, "a mapping with its type is wanted"},
        {"tools: {ocr: {risk: low, command: [/x], schema: {type: object}, timeout: 2h}}\n", 1, 74,
         "outside 1ms to 1h"},
        {"tools: {ocr: {risk: low, command: [/x], schema: {type: object}, output: 1m}}\n", 1, 73,
         "outside 1 to 64k"},
        {"tools: {ocr: {risk: low, command: [/x], schema: {type: object}, env: [A]}}\n", 1, 70,
         "NAME=value is wanted"},
        {"tools: {ocr: {risk: low, command: [/x], schema: {type: object}, answer: xml}}\n", 1, 73,
         "'xml' is none of text, json"},
        {"arena: {judges: {}}\n", 1, 17, "arena.judges: a list is wanted"},
        {"arena: {judges: [x]}\n", 1, 18, "a judge is a mapping"},
        {"arena: {judges: [{name: a}]}\n", 1, 18,
         "judge a: either command: [/program, ...] or model: NAME is wanted"},
        {"arena: {judges: [{name: a, command: [/x], model: m}]}\n", 1, 18,
         "judge a: either command"},
        {"arena: {judges: [{name: a, prompt: poet}]}\n", 1, 36,
         "prompt 'poet' is neither one of reviewer sceptic nor the absolute path of a file"},

        {"arena: {judges: [{name: a, command: [sh]}]}\n", 1, 37,
         "needs its absolute path, not 'sh'"},
        {"arena: {judges: [{name: a, url: \"https://h/\", model: m}]}\n", 1, 33,
         "judge a: a model is asked through the gateway: name its address in `upstreams`"},
        {"arena: {judges: [{name: a, command: [/x], timeout: 0s}]}\n", 1, 52, "outside 1ms to 1h"},
        {"arena: {judges: [{name: a, command: [/x]}, {name: a, command: [/y]}]}\n", 1, 44,
         "'a' comes twice"},
        {"arena: {judges: [{name: a, command: [/x]}], quorum: 2}\n", 1, 45,
         "more than there are judges"},
        {"proxy: {clients: [{name: llm, token_file: /x}]}\n", 1, 19,
         "client llm: runs are called that at the gateway"},
        {"upstreams: {a: {url: \"http://api.example.com/v1\", shape: openai, tier: worker, "
         "models: [m]}}\n",
         1, 22, "http:// is for 127.0.0.1"},
        {"upstreams: {a: {url: \"http://localhost.example.com/v1\", shape: openai, tier: worker, "
         "models: [m]}}\n",
         1, 22, "http:// is for 127.0.0.1"},
        {"upstreams: {a: {url: \"https://k@h/v1\", shape: openai, tier: worker, models: [m]}}\n", 1,
         22, "without a user"},
        {"upstreams: {a: {url: \"https://h/v1\", shape: gemini, tier: worker, models: [m]}}\n", 1,
         16, "'gemini' is none of openai, anthropic"},
        {"upstreams: {a: {url: \"https://h/v1\", shape: openai, tier: big, models: [m]}}\n", 1, 16,
         "'big' is none of worker coder"},
        {"upstreams: {a: {url: \"https://h/v1\", shape: openai, tier: worker}}\n", 1, 16,
         "its models are missing"},
        {"upstreams: {a: {url: \"https://h/v1\", shape: openai, tier: worker, models: [m], "
         "key_file: k}}\n",
         1, 16, "need absolute paths"},
        {"upstreams: {a: {url: \"https://h/v1\", shape: openai, tier: worker, models: [m], "
         "key_file: /k, key_env: K}}\n",
         1, 16, "in key_file or in key_env"},
        {"upstreams: {a: {url: \"https://h/v1\", shape: openai, tier: worker, models: [\"=m\"]}}\n",
         1, 75, "NAME or NAME=MODEL"},
        {"upstreams: {a: {key: sk-1}}\n", 1, 17, "key"},
        {"proxy: {clients: {}}\n", 1, 18, "proxy.clients: a list"},
        {"proxy: {clients: [{name: a}]}\n", 1, 19, "the absolute path of its token_file"},
        {"proxy: {clients: [{name: a, token_file: /t, budget: much}]}\n", 1, 53,
         "budget of a client"},
        {"proxy: {clients: [{name: a, token_file: /t}, {name: a, token_file: /u}]}\n", 1, 46,
         "'a' comes twice"},
        {"run: {profile: strct}\n", 1, 7, "there is no profile 'strct'; did you mean 'strict'?"},
        {"run: {profiles: [standard]}\n", 1, 7, "must be one of run.profiles"},
        {"run: {role: excute}\n", 1, 7, "there is no role 'excute'; did you mean 'execute'?"},
        {"limits: {memory: 2g}\nceilings: {memory: 1g}\n", 1, 10, "more than ceilings.memory"},
        {"ceilings: {memory: 64m}\n", 1, 12, "less than the limit of the same name"},
        {"arena: {paths: [core]}\n", 1, 9, "'core' is no absolute path"},
        {"audit: {alert_command: [mail, root]}\n", 1, 9, "'mail' is no absolute path"},
        {"profiles: {mine: {imports: any}}\n", 1, 12, "a new profile needs base"},
        {"profiles: {mine: {base: strct}}\n", 1, 25, "no profile 'strct'; did you mean 'strict'?"},
        {"profiles: {none: {base: strict}}\n", 1, 12, "'none' is no name for a profile"},
        {"profiles: {strict: {imports: al}}\n", 1, 30, "imports: 'al' is none of listed, any"},
        {"profiles: {strict: {guards: 1}}\n", 1, 29, "guards: '1' is neither true nor false"},
        {"profiles: {strict: {source_max: 9g}}\n", 1, 33, "source_max: 9g is outside 1 to 1m"},
        {"profiles: {strict: {rules: {}}}\n", 1, 28, "rules: a list is wanted"},
        {"profiles: {strict: {rules: [{kind: import-alow, name: x}]}}\n", 1, 36,
         "no kind of rule: 'import-alow'; did you mean 'import-allow'?"},
        {"profiles: {strict: {rules: [{kind: import-allow}]}}\n", 1, 29,
         "a rule needs kind and name"},
        {"profiles: {strict: {rules: [{kind: import-allow, name: a-b}]}}\n", 1, 56,
         "no name of a module"},
        {"profiles: {strict: {rules: [{kind: import-allow, name: \"a*\"}]}}\n", 1, 56,
         "takes no pattern"},
        {"profiles: {strict: {rules: [{kind: member-deny, name: a}]}}\n", 1, 55,
         "not module.member"},
        {"profiles: {strict: {rules: [{kind: construct-deny, name: goto}]}}\n", 1, 58,
         "no construct"},
        {"profiles: {strict: {rules: [{kind: name-deny, name: x, id: X}]}}\n", 1, 29,
         "id: words with dots"},
        {"profiles: {strict: {rules: [{kind: name-deny, name: x, id: py.import.json}]}}\n", 1, 29,
         "is another rule's"},
        {"profiles: {strict: {remove: [py.import.jsn]}}\n", 1, 30,
         "did you mean 'py.import.json'?"},
        {"limits: {cpu: \"1s\\0\"}\n", 1, 15, "a NUL character"},
        {"output: {secret_names: [\"a\\nb\"]}\n", 1, 25, "a control character"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct policy_problems p;
        bool found = false;
        policy_problems_init(&p);
        if (policy_check_bytes("f.yaml", rows[i].yaml, strlen(rows[i].yaml), &p) < 0)
            abort();
        for (size_t k = 0; k < p.count; k++)
            found = found ||
                    (!p.items[k].warning && p.items[k].line == rows[i].line &&
                     p.items[k].column == rows[i].column && strstr(p.items[k].text, rows[i].say));
        if (!tap_ok(found, "%u:%u: %s", rows[i].line, rows[i].column, rows[i].say))
            for (size_t k = 0; k < p.count; k++)
                printf("# %u:%u: %s\n", p.items[k].line, p.items[k].column, p.items[k].text);
        policy_problems_done(&p);
    }
}

static void missing_environment(void)
{
    static const char *const yaml[] = {"python: {environment: /no/such/folder}\n",
                                       "python: {environment: /usr}\n"};
    for (size_t i = 0; i < 2; i++) {
        struct policy_problems p;
        policy_problems_init(&p);
        if (policy_check_bytes("f.yaml", yaml[i], strlen(yaml[i]), &p) < 0)
            abort();
        const bool told =
            p.count == 1 && p.items[0].warning && strstr(p.items[0].text, "no such folder");
        tap_ok(p.errors == 0 && told == (i == 0) && p.count == (i == 0),
               i ? "an environment that is there is no warning"
                 : "an environment that is not on this machine is a warning");
        policy_problems_done(&p);
    }
}

static void all_at_once(void)
{
    static const char yaml[] = "limts: {}\n"
                               "limits:\n"
                               "  timeout: x\n"
                               "  memory: 1k\n"
                               "run:\n"
                               "  mode: f\n"
                               "  profile: nobody\n"
                               "roles: {a: {tools: [Grpe]}}\n"
                               "audit: {retention_days: 7}\n";
    struct policy_problems p;
    policy_problems_init(&p);
    if (policy_check_bytes("f.yaml", yaml, strlen(yaml), &p) < 0)
        abort();
    tap_eq_int(p.errors, 6, "six errors are found in one reading");
    tap_eq_int(p.count, 8, "two warnings are found in the same reading as six errors");
    bool retention = false, tool = false;
    for (size_t i = 0; i < p.count; i++) {
        retention = retention || (p.items[i].warning && p.items[i].line == 9 &&
                                  strstr(p.items[i].text, "90 days"));
        tool = tool || (p.items[i].warning && p.items[i].line == 8 &&
                        strstr(p.items[i].text, "mean 'Grep'"));
    }
    tap_ok(retention, "retention below 90 days is a warning");
    tap_ok(tool, "a role with an unknown tool is a warning");
    struct err err = ERR_INIT;
    tap_ok(policy_problems_err(&p, &err) == ERR_FORMAT &&
               strncmp(err.msg, "f.yaml:1:1: unknown", 19) == 0 && strstr(err.msg, "and 5 more"),
           "problems in one line are the first and how many more");
    policy_problems_done(&p);

    struct buf many;
    buf_init(&many, MIB);
    for (int i = 0; i < 1000; i++)
        if (buf_printf(&many, "k%d: 1\n", i) < 0)
            abort();
    policy_problems_init(&p);
    if (policy_check_bytes("f.yaml", many.data, many.len, &p) < 0)
        abort();
    tap_ok(p.errors == 1000 && p.count == POLICY_PROBLEMS_MAX && p.dropped == 800,
           "a thousand errors are counted");
    policy_problems_done(&p);
    buf_reset(&many);
    for (int i = 0; i < 300000; i++)
        if (buf_str(&many, "- a") < 0)
            abort();
    policy_problems_init(&p);
    tap_ok(policy_check_bytes("f.yaml", many.data, many.len, &p) == 0 && p.errors == 1,
           "a line without end is refused");
    policy_problems_done(&p);
    buf_reset(&many);
    if (buf_str(&many, "output: {secret_names: [") < 0)
        abort();
    for (int i = 0; i < 100000; i++)
        if (buf_str(&many, "a, ") < 0)
            abort();
    policy_problems_init(&p);
    bool told = false;
    if (policy_check_bytes("f.yaml", many.data, many.len, &p) < 0)
        abort();
    for (size_t i = 0; i < p.count; i++)
        told = told || strstr(p.items[i].text, "more values than any policy needs");
    tap_ok(told, "too many values are refused");
    policy_problems_done(&p);
    buf_done(&many);
    char *big = calloc(1, POLICY_FILE_MAX + 1);
    memset(big, '\n', POLICY_FILE_MAX + 1);
    policy_problems_init(&p);
    tap_ok(policy_check_bytes("f.yaml", big, POLICY_FILE_MAX + 1, &p) == 0 && p.errors == 1 &&
               p.items[0].line == 0,
           "a file of more than a megabyte is refused");
    policy_problems_done(&p);
    free(big);
}

/* ---- what a file changes ---- */

static void changes(void)
{
    struct policy_problems problems;
    struct policy_box *box = load("# nothing but a comment\n", &problems);
    tap_ok(problems.count == 0 && box->p.limits.timeout_ms == 30000,
           "a file of comments changes nothing");
    policy_box_free(box);
    policy_problems_done(&problems);
    box = load("limits:\n  # all of it commented out\nrun:\n", &problems);
    tap_ok(problems.count == 0, "a heading with nothing below it is no mistake");
    policy_box_free(box);
    policy_problems_done(&problems);

    box = load(
        "limits:\n  timeout: 1.5s\n  memory: 1g\noutput: {escape: none, scrub_paths: [/srv/x]}\n"
        "audit: {sync: off, alert_command: [/bin/mail, root]}\n"
        "roles:\n  explore: {tools: [Grep]}\n  boss: {tools: [\"*\"]}\n"
        "tools:\n  Grep: {risk: medium}\n  Deploy: {risk: critical}\n"
        "arena: {judges: [{name: a, command: [/bin/a, -x]}, {name: b, command: [/bin/b], "
        "timeout: 5s}]}\n",
        &problems);
    const struct policy *p = &box->p;
    tap_eq_int(problems.errors, 0, "a good policy file has no errors");
    tap_ok(p->limits.timeout_ms == 1500 && p->limits.memory == GIB && p->limits.cpu_ms == 30000,
           "a policy file changes two limits, and the rest stay");
    int timeout = policy_key_find("limits.timeout"), cpu = policy_key_find("limits.cpu");
    tap_ok(p->origins[timeout].file == 1 && p->origins[timeout].line == 2 &&
               p->origins[cpu].file == 0 && strcmp(p->files[1], "f.yaml") == 0,
           "each limit knows the file and line it came from");
    tap_ok(p->output.escape == POLICY_ESCAPE_NONE && p->output.scrub_paths.count == 1 &&
               p->audit.sync == POLICY_SYNC_OFF && p->audit.alert_command.count == 2,
           "words, lists and a plain `off` are read");
    tap_ok(p->nroles == 4 && !role_may(policy_find_role(p, "explore"), "Find") &&
               role_may(policy_find_role(p, "analyze"), "Jq"),
           "roles are merged by name, their lists replaced");
    tap_ok(policy_find_tool(p, "Grep")->risk == POLICY_RISK_MEDIUM &&
               policy_find_tool(p, "Deploy")->risk == POLICY_RISK_CRITICAL &&
               p->ntools == policy_builtin.ntools + 1,
           "tools are merged by name");
    tap_ok(p->arena.njudges == 2 && strcmp(p->arena.judges[0].command.items[1], "-x") == 0 &&
               p->arena.judges[1].timeout_ms == 5000,
           "judges are read with arguments and a time of their own");
    if (policy_box_load(box, "g.yaml", "limits: {timeout: 2s}", 21, &problems) < 0)
        abort();
    tap_ok(p->limits.timeout_ms == 2000 && p->limits.memory == GIB && p->origins[timeout].file == 2,
           "a later file wins, value by value");
    struct buf a, b;
    show_text(p, NULL, true, &a);
    tap_ok(strstr(a.data, "timeout: 2s") && strstr(a.data, "# g.yaml:1\n") &&
               strstr(a.data, "# f.yaml:3\n") && strstr(a.data, "# built-in\n"),
           "a policy is shown with the origin of each value");
    struct policy_problems again;
    struct policy_box *copy = load(a.data, &again);
    buf_done(&a);
    show_text(p, NULL, false, &a);
    show_text(&copy->p, NULL, false, &b);
    tap_ok(again.errors == 0 && strcmp(a.data, b.data) == 0,
           "what is shown reads back as the same policy");
    buf_done(&a);
    buf_done(&b);
    show_text(p, "limits.cpu", false, &a);
    tap_eq_str(a.data, "limits:\n  cpu: 30s\n", "one key of a policy is shown");
    buf_done(&a);
    show_text(p, "roles.explore", false, &a);
    tap_eq_str(a.data, "roles:\n  explore:\n    tools: [Grep]\n",
               "one role of a policy is shown by its name");
    buf_done(&a);
    show_text(p, "version", false, &a);
    tap_eq_str(a.data, "version: 1\n", "a key without a section is shown");
    buf_done(&a);
    bool found = true;
    buf_init(&a, MIB);
    tap_ok(policy_show_yaml(p, "limit", false, &a, &found) == 0 && !found,
           "a part that does not exist is not shown");
    buf_done(&a);
    policy_box_free(copy);
    policy_box_free(box);
    policy_problems_done(&again);
    policy_problems_done(&problems);
}

static const struct policy_rule *rule_of(const struct policy_profile *p, enum policy_rule_kind kind,
                                         const char *name)
{
    for (size_t i = 0; p && i < p->rule_count; i++)
        if (p->rules[i].kind == kind && strcmp(p->rules[i].name, name) == 0)
            return &p->rules[i];
    return NULL;
}

static void profiles(void)
{
    struct policy_problems problems;
    struct policy_box *box = load("profiles:\n"
                                  "  science:\n"
                                  "    base: strict\n"
                                  "    summary: strict, and numpy\n"
                                  "    threads: true\n"
                                  "    compute_only: false\n"
                                  "    source_max: 100k\n"
                                  "    remove: [py.import.random]\n"
                                  "    rules:\n"
                                  "      - {kind: import-allow, name: numpy}\n"
                                  "      - {kind: call-deny, name: sum, hint: \"use math.fsum\"}\n"
                                  "  empty: {base: none, imports: any}\n"
                                  "  open: {threads: false}\n"
                                  "run: {profile: science, profiles: [science, open]}\n",
                                  &problems);
    const struct policy *p = &box->p;
    const struct policy_profile *science = policy_find_profile(p, "science"),
                                *strict = policy_find_profile(p, "strict"),
                                *empty = policy_find_profile(p, "empty"),
                                *open = policy_find_profile(p, "open");
    tap_ok(problems.errors == 0 && science && empty && open, "profiles of an operator are read");
    tap_ok(science && science->rule_count == strict->rule_count + 1 && science->threads &&
               science->guards && science->source_max == 102400 &&
               science->imports == POLICY_IMPORTS_LISTED,
           "a profile of an operator is made of its base");
    const struct policy_rule *numpy = rule_of(science, POLICY_IMPORT_ALLOW, "numpy"),
                             *sum = rule_of(science, POLICY_CALL_DENY, "sum");
    tap_ok(numpy && strcmp(numpy->id, "py.import-allow.numpy") == 0 && !*numpy->hint &&
               *numpy->reason,
           "a rule put in gets what it left out");
    tap_ok(sum && strcmp(sum->hint, "use math.fsum") == 0 &&
               !rule_of(science, POLICY_IMPORT_ALLOW, "random") &&
               rule_of(strict, POLICY_IMPORT_ALLOW, "random"),
           "a rule taken out is gone there, and only there");
    tap_ok(empty && empty->rule_count == 0 && empty->imports == POLICY_IMPORTS_ANY,
           "a profile with `base: none` is empty");
    tap_ok(open && !open->threads && !policy_profile_find("open")->threads == !true,
           "a built-in profile can be changed, and the built-in table stays");
    struct buf a, b;
    show_text(p, NULL, true, &a);
    struct policy_problems again;
    struct policy_box *copy = load(a.data, &again);
    tap_ok(strstr(a.data, "# f.yaml:10\n") != NULL, "the origin of a rule is shown");
    buf_done(&a);
    show_text(p, "profiles", false, &a);
    show_text(&copy->p, "profiles", false, &b);
    tap_ok(again.errors == 0 && strcmp(a.data, b.data) == 0,
           "profiles that are shown read back as the same");
    buf_done(&a);
    buf_done(&b);
    policy_box_free(copy);
    policy_problems_done(&again);
    policy_box_free(box);
    policy_problems_done(&problems);
}

int main(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : "policies";
    builtin();
    shipped();
    mistakes();
    all_at_once();
    missing_environment();
    changes();
    profiles();
    return tap_done();
}
