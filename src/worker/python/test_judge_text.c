/* SPDX-License-Identifier: Apache-2.0 */
/* The scanners of the judge, without an interpreter. */
#include "judge_text.h"

#include "base/tap.h"

static void places(void)
{
    const char text[] = "ab\ncd\r\nef\rg\xc3\xa9h\n";
    static const struct {
        size_t offset;
        uint32_t line, column;
    } t[] = {{0, 1, 1},  {2, 1, 3},  {3, 2, 1},  {5, 2, 3}, {7, 3, 1},
             {10, 4, 1}, {13, 4, 3}, {15, 5, 1}, {99, 5, 1}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct text_place p = py_text_place(text, sizeof text - 1, t[i].offset);
        tap_ok(p.line == t[i].line && p.column == t[i].column, "byte %zu is at %u:%u", t[i].offset,
               p.line, p.column);
    }
    struct text_cursor c = {.text = text, .len = sizeof text - 1};
    static const struct {
        uint32_t line, bytes, column;
        size_t offset;
    } u[] = {{1, 0, 1, 0}, {4, 3, 3, 13}, {4, 1, 2, 11},
             {2, 1, 2, 4}, {3, 9, 8, 15}, {9, 0, 1, 15}};
    for (size_t i = 0; i < sizeof u / sizeof *u; i++) { /* forwards, backwards, past the end */
        size_t offset;
        struct text_place p = py_text_node_place(&c, u[i].line, u[i].bytes, &offset);
        tap_ok(p.line == u[i].line && offset <= c.len, "line %u byte %u is column %u, offset %zu",
               u[i].line, u[i].bytes, p.column, offset);
        tap_eq_int(p.column, u[i].column, "the column of a node is counted in characters");
        tap_eq_int(offset, u[i].offset, "the offset of a node is counted in bytes");
    }
}

static void carriage_returns(void)
{
    static const struct {
        const char *text;
        size_t at;
    } t[] = {{"", 0},         {"a", 1},   {"a\r\n", 3}, {"a\rb", 1},
             {"a\r\n\rb", 3}, {"a\r", 1}, {"\r", 0},    {"a\r\n\r\n", 5}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        tap_eq_int(py_text_bare_cr(t[i].text, strlen(t[i].text)), t[i].at,
                   "carriage return, row %zu", i);
}

static void cookies(void)
{
    static const struct {
        const char *text, *name; /* NULL: none, or UTF-8 */
    } t[] = {
        {"", NULL},
        {"# coding: utf-8\n", NULL},
        {"# -*- Coding: UTF-8 -*-\n", NULL}, /* the word itself is in small letters */
        {"# coding=UTF-8\n", NULL},
        {"# -*- coding: utf-7 -*-\n", "utf-7"},
        {" \t\f# vim: fileencoding=latin-1", "latin-1"},
        {"#!/bin/sh\n# coding: cp1252\n", "cp1252"},
        {"\r\n# coding: rot13", "rot13"},
        {"#\n#\n# coding: rot13", NULL},
        {"x = 1 # coding: rot13", NULL},
        {"x = 1\n# coding: rot13", NULL},
        {"# coding:   \n", NULL},
        {"# coding", NULL},
        {"# encoding: raw_unicode_escape", "raw_unicode_escape"},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct text_piece name = {0};
        bool found = py_text_cookie(t[i].text, strlen(t[i].text), &name);
        tap_ok(found == (t[i].name != NULL) &&
                   (!found ||
                    (name.len == strlen(t[i].name) && memcmp(name.at, t[i].name, name.len) == 0)),
               "cookie, row %zu", i);
    }
}

static void fields(void)
{
    static const struct {
        const char *text, *want; /* .attribute and [item, as they come */
    } t[] = {
        {"", ""},
        {"no field", ""},
        {"{}", ""},
        {"{0}", ""},
        {"{0.a}", ".a"},
        {"{0.a.b[c].d}", ".a.b[c.d"},
        {"{name[key]!r:>{width.x}}", "[key.x"},
        {"{{0.a}}", ".a"},
        {"{0[", "["},
        {"{0.", "."},
        {"{", ""},
        {"{0[{1.a}", "[.a"},
        {"{0!r.a}", ""},
        {"{0:.3f}", ""},
        {"{0[a].b", "[a.b"},
        {"{a b.c}", ".c"},
        {"}{.x}", ".x"},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char got[64] = "";
        struct text_fields f = {t[i].text, t[i].text + strlen(t[i].text), NULL};
        struct text_piece name, field;
        for (enum text_field k; (k = py_text_next_field(&f, &name, &field)) != TEXT_FIELD_NONE;)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%c%.*s",
                     k == TEXT_FIELD_ITEM ? '[' : '.', (int)name.len, name.at);
        tap_eq_str(got, t[i].want, "fields of '%s'", t[i].text);
    }
    struct text_fields none = {NULL, NULL, NULL};
    struct text_piece name, field;
    tap_ok(py_text_next_field(&none, &name, &field) == TEXT_FIELD_NONE, "no text has no fields");
}

static void words(void)
{
    struct text_piece rest = {" list[Node] | g\xc3\xa9o.x1_ ", 23}, word;
    char got[64] = "";
    while (py_text_next_word(&rest, &word))
        snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s;", (int)word.len, word.at);
    tap_eq_str(got, "list;Node;g\xc3\xa9o;x1_;", "the words of an operand are found");
}

int main(void)
{
    places();
    carriage_returns();
    cookies();
    fields();
    words();
    return tap_done();
}
