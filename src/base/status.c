/* Names and meanings of status codes, expanded from the one list in vtrn/status.h, and the error record: the first
 * detector of a problem writes one line, everybody above forwards the status in silence.
 * Stands below everything; must not know what the messages are about. */
#include "base/base.h"

const char *vtrn_status_name(enum vtrn_status status)
{
    switch (status) {
#define X(name, value, text) \
    case VTRN_##name: return #name;
        VTRN_STATUS_MAP(X)
#undef X
    }
    return "UNKNOWN";
}

const char *vtrn_status_text(enum vtrn_status status)
{
    switch (status) {
#define X(name, value, text) \
    case VTRN_##name: return text;
        VTRN_STATUS_MAP(X)
#undef X
    }
    return "a status that this version does not know";
}

/* Names in programs may hold anything; a message is one line that a terminal can print. */
static void make_one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f) *text = '?';
}

enum vtrn_status vtrn_fail(struct vtrn_error *err, enum vtrn_status status, const char *fmt, ...)
{
    va_list args;

    if (!err) return status;
    err->status = status;
    va_start(args, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, args); /* a longer message is cut: it names the rule first */
    va_end(args);
    make_one_line(err->text);
    return status;
}

void vtrn_error_prefix(struct vtrn_error *err, const char *fmt, ...)
{
    char prefix[512];
    size_t length, room, kept;
    va_list args;

    if (!err) return;
    va_start(args, fmt);
    vsnprintf(prefix, sizeof prefix - 2, fmt, args);
    va_end(args);
    make_one_line(prefix);
    length = strlen(prefix);
    memcpy(prefix + length, ": ", 2);
    length += 2;
    room = sizeof err->text - 1 - length; /* positive: the prefix is at most half of the text */
    kept = strlen(err->text);
    if (kept > room) kept = room;
    memmove(err->text + length, err->text, kept);
    memcpy(err->text, prefix, length);
    err->text[length + kept] = '\0';
}

void vtrn_assert_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "vtrn: internal error at %s:%d: \"%s\" does not hold; this is a bug of vtrn, please report it\n", file,
            line, cond);
    abort();
}
