/* SPDX-License-Identifier: Apache-2.0 */
/* The API's own functions for UTF-8 end at a NUL. */
#include "text.h"

#include "base/utf8.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { REPLACEMENT = 0xfffd };

static size_t put_utf16(JSChar *to, uint32_t cp)
{
    if (cp < 0x10000) {
        to[0] = (JSChar)cp;
        return 1;
    }
    to[0] = (JSChar)(0xd800 + ((cp - 0x10000) >> 10));
    to[1] = (JSChar)(0xdc00 + ((cp - 0x10000) & 0x3ff));
    return 2;
}

/* Eight bits a character: half of the memory, and the engine's faster readers. NULL: it is not ASCII, or no memory. */
static JSStringRef new_ascii(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && text[i] != 0 && (unsigned char)text[i] < 0x80)
        i++;
    char *copy = i == len ? strndup(text, len) : NULL;
    JSStringRef made = copy ? JSStringCreateWithUTF8CString(copy) : NULL;
    free(copy);
    return made;
}

JSStringRef js_text_new(const char *text, size_t len)
{
    JSStringRef plain = new_ascii(text, len);
    if (plain)
        return plain;
    JSChar *units = malloc((len + 1) * sizeof *units);
    size_t count = 0;
    if (!units)
        return NULL;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        int n = utf8_decode((const unsigned char *)text + i, len - i, &cp);
        count += put_utf16(units + count, n > 0 ? cp : REPLACEMENT);
        i += n > 0 ? (size_t)n : 1;
    }
    JSStringRef made = JSStringCreateWithCharacters(units, count);
    free(units);
    return made;
}

JSValueRef js_text_value(JSContextRef ctx, const char *text, size_t len)
{
    JSStringRef made = js_text_new(text, len);
    if (!made)
        return JSValueMakeNull(ctx);
    JSValueRef value = JSValueMakeString(ctx, made);
    JSStringRelease(made);
    return value;
}

static uint32_t next_point(const JSChar *units, size_t count, size_t *at)
{
    const uint32_t first = units[(*at)++];
    if (first < 0xd800 || first > 0xdfff)
        return first;
    if (first > 0xdbff || *at == count || units[*at] < 0xdc00 || units[*at] > 0xdfff)
        return REPLACEMENT;
    return 0x10000 + ((first - 0xd800) << 10) + (units[(*at)++] - 0xdc00u);
}

char *js_text_utf8(JSStringRef text, size_t *ret_len)
{
    const JSChar *units = JSStringGetCharactersPtr(text);
    const size_t count = JSStringGetLength(text);
    char *out = malloc(count * 3 + 1);
    size_t len = 0;
    *ret_len = 0;
    if (!out)
        return NULL;
    for (size_t i = 0; i < count;)
        len += (size_t)utf8_encode(next_point(units, count, &i), out + len);
    out[len] = 0;
    *ret_len = len;
    return out;
}

char *js_text_of(JSContextRef ctx, JSValueRef value, size_t *ret_len)
{
    JSStringRef text = JSValueToStringCopy(ctx, value, NULL);
    *ret_len = 0;
    if (!text)
        return NULL;
    char *out = js_text_utf8(text, ret_len);
    JSStringRelease(text);
    return out;
}

JSValueRef js_text_property(JSContextRef ctx, JSValueRef object, const char *name)
{
    if (!object || !JSValueIsObject(ctx, object))
        return JSValueMakeUndefined(ctx);
    JSStringRef key = JSStringCreateWithUTF8CString(name);
    JSValueRef value = JSObjectGetProperty(ctx, (JSObjectRef)(uintptr_t)object, key, NULL);
    JSStringRelease(key);
    return value ? value : JSValueMakeUndefined(ctx);
}

double js_text_number(JSContextRef ctx, JSValueRef object, const char *name)
{
    JSValueRef value = js_text_property(ctx, object, name);
    const double n = JSValueIsNumber(ctx, value) ? JSValueToNumber(ctx, value, NULL) : 0;
    return isfinite(n) ? n : 0;
}

char *js_text_string(JSContextRef ctx, JSValueRef object, const char *name, size_t *ret_len)
{
    JSValueRef value = js_text_property(ctx, object, name);
    *ret_len = 0;
    return JSValueIsString(ctx, value) ? js_text_of(ctx, value, ret_len) : NULL;
}
