/* The smallest pieces of the text form: characters, words, integers, quoted strings. Nothing is read beyond `end`, and the
 * first thing that does not fit is reported with its column. Must not know patterns or instructions. */
#include "isa/text_int.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

enum vtrn_status isa_fail_at(struct parser *p, const char *at, const char *what)
{
    size_t length = (size_t)(p->end - at);
    bool cut = length > 24;

    return vtrn_fail(p->err, VTRN_FORMAT, "column %zu%s%s: found \"%.*s%s\"; %s", (size_t)(at - p->start) + 1,
                     p->operand ? ", operand " : "", p->operand ? p->operand : "", cut ? 24 : (int)length, at, cut ? "..." : "", what);
}

void isa_skip_space(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t')) p->at++;
}

bool isa_at_end(struct parser *p)
{
    isa_skip_space(p);
    return p->at == p->end || *p->at == '#';
}

char isa_peek(struct parser *p)
{
    isa_skip_space(p);
    return p->at < p->end ? *p->at : '\0';
}

bool isa_eat(struct parser *p, char c)
{
    if (isa_peek(p) != c || p->at == p->end) return false;
    p->at++;
    return true;
}

enum vtrn_status isa_expect(struct parser *p, char c)
{
    char what[] = "'?' is expected here";

    what[1] = c;
    return isa_eat(p, c) ? VTRN_OK : isa_fail_at(p, p->at, what);
}

size_t isa_word_length(struct parser *p)
{
    const char *c = p->at;

    while (c < p->end && (isalnum((unsigned char)*c) || *c == '_')) c++;
    return (size_t)(c - p->at);
}

bool isa_eat_word(struct parser *p, const char *word)
{
    size_t length;

    isa_skip_space(p);
    length = isa_word_length(p);
    if (length != strlen(word) || memcmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

enum vtrn_status isa_parse_i64(struct parser *p, int64_t min, int64_t max, int64_t *out)
{
    char text[24];
    size_t length = 0;
    long long value;
    const char *at;

    isa_skip_space(p);
    at = p->at;
    if (at < p->end && *at == '-') text[length++] = *at++;
    while (at < p->end && isdigit((unsigned char)*at) && length < sizeof text - 1) text[length++] = *at++;
    text[length] = '\0';
    if (length == 0 || !isdigit((unsigned char)text[length - 1])) return isa_fail_at(p, p->at, "an integer is expected here");
    errno = 0;
    value = strtoll(text, NULL, 10);
    if (errno || value < min || value > max || (at < p->end && isdigit((unsigned char)*at))) {
        char what[96];

        snprintf(what, sizeof what, "the integer must be in %" PRId64 "..%" PRId64, min, max);
        return isa_fail_at(p, p->at, what);
    }
    p->at = at;
    *out = value;
    return VTRN_OK;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

enum vtrn_status isa_parse_quoted(struct parser *p, struct vtrn_buf *out)
{
    const char *start = p->at;

    VTRN_TRY(isa_expect(p, '"'));
    while (p->at < p->end && *p->at != '"') {
        char c = *p->at++;

        if (c == '\\') {
            c = p->at < p->end ? *p->at++ : '\0';
            if (c == 'n') c = '\n';
            else if (c == 't') c = '\t';
            else if (c == 'x' && p->end - p->at >= 2 && hex_digit(p->at[0]) >= 0 && hex_digit(p->at[1]) >= 0) {
                c = (char)(hex_digit(p->at[0]) << 4 | hex_digit(p->at[1]));
                p->at += 2;
            } else if (c != '"' && c != '\\') return isa_fail_at(p, p->at - 1, "escapes are \\\" \\\\ \\n \\t and \\xNN");
        }
        if (c == '\0') return isa_fail_at(p, p->at - 1, "a string cannot hold a zero byte");
        if (vtrn_buf_append(out, &c, 1) < 0) return vtrn_fail(p->err, VTRN_NOMEM, "no memory for a string");
    }
    if (p->at == p->end) return isa_fail_at(p, start, "the string has no end");
    p->at++;
    return VTRN_OK;
}

enum vtrn_status isa_parse_string(struct parser *p, int64_t *index_out)
{
    const char *at = p->at;
    struct vtrn_buf text = { 0 };
    uint32_t index = 0;
    bool known = false;
    enum vtrn_status status;

    if (isa_eat(p, '$')) return isa_parse_i64(p, INT64_MIN, INT64_MAX, index_out);
    if (isa_peek(p) != '"') return isa_fail_at(p, p->at, "a \"string\" or $N is expected here");
    status = isa_parse_quoted(p, &text);
    if (status >= 0 && p->names && p->names->string_index) /* the table belongs to the caller, who may write it */
        known = p->names->string_index((void *)(uintptr_t)p->names->self, text.data ? (const char *)text.data : "", text.size, &index);
    vtrn_buf_fini(&text);
    VTRN_TRY(status);
    if (!known) return isa_fail_at(p, at, "the string table does not take this string");
    *index_out = index;
    return VTRN_OK;
}

enum vtrn_status vtrn_text_unquote(const char *text, size_t length, size_t *at, struct vtrn_buf *out, struct vtrn_error *err)
{
    struct parser p = { .start = text, .at = text + *at, .end = text + length, .err = err };

    VTRN_TRY(isa_parse_quoted(&p, out));
    *at = (size_t)(p.at - p.start);
    return VTRN_OK;
}
