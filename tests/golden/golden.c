/* Golden files: golden [--update] FILE.vt ... A file is a program in text form under a block of comment lines. It must
 * parse, verify, and print as it stands there; the program must also survive saving and loading. A file whose comments
 * hold a line "# error: TEXT" must be refused with a message that holds TEXT. --update writes what is printed today. */
#include "prog/prog.h"

#include <errno.h>

static bool read_file(const char *path, struct vtrn_buf *out)
{
    FILE *file = fopen(path, "rb");
    size_t got;

    if (!file) return false;
    do {
        if (vtrn_buf_reserve(out, 4096) < 0) break;
        got = fread(out->data + out->size, 1, out->capacity - out->size - 1, file);
        out->size += got;
    } while (got);
    fclose(file);
    out->data[out->size] = '\0';
    return true;
}

/* Length of the comment block at the head, blank lines included. */
static size_t head_length(const char *text)
{
    const char *at = text;

    while (*at == '#' || *at == '\n') {
        const char *end = strchr(at, '\n');

        if (!end) return strlen(text);
        at = end + 1;
    }
    return (size_t)(at - text);
}

static int report(const char *path, const char *what, const char *detail)
{
    fprintf(stderr, "%s: %s%s%s\n", path, what, detail[0] ? ": " : "", detail);
    return 1;
}

/* The first line that differs, for the report. */
static int report_difference(const char *path, const char *wanted, const char *got)
{
    int line = 1;

    while (*wanted && *wanted == *got) {
        if (*wanted == '\n') line++;
        wanted++;
        got++;
    }
    fprintf(stderr, "%s: line %d below the comments differs\n  in the file: %.*s\n  printed:     %.*s\n", path, line,
            (int)strcspn(wanted, "\n"), wanted, (int)strcspn(got, "\n"), got);
    return 1;
}

static int check_error(const char *path, const char *marker, enum vtrn_status status, const char *message)
{
    char wanted[256];

    marker += strlen("# error: ");
    snprintf(wanted, sizeof wanted, "%.*s", (int)strcspn(marker, "\n"), marker);
    if (status >= 0) return report(path, "is accepted, expected", wanted);
    return strstr(message, wanted) ? 0 : report(path, "gives another message", message);
}

static int write_file(const char *path, const char *head, size_t head_size, const struct vtrn_buf *body)
{
    FILE *file = fopen(path, "wb");

    if (!file) return report(path, "cannot be written", strerror(errno));
    fwrite(head, 1, head_size, file);
    fwrite(body->data, 1, body->size, file);
    return fclose(file) == 0 ? 0 : report(path, "cannot be written", strerror(errno));
}

static int check_program(const char *path, const char *text, struct vtrn_prog *prog, bool update)
{
    struct vtrn_buf printed = { 0 }, bytes = { 0 }, again = { 0 };
    struct vtrn_prog *loaded = NULL;
    struct vtrn_error err = { 0 };
    size_t head = head_length(text);
    int bad = 0;

    if (vtrn_prog_verify(prog, &err) < 0 || vtrn_prog_print(prog, &printed, &err) < 0 || vtrn_prog_save(prog, &bytes, &err) < 0 ||
        vtrn_prog_load(bytes.data, bytes.size, &loaded, &err) < 0 || vtrn_prog_print(loaded, &again, &err) < 0)
        bad = report(path, "fails", err.text);
    else if (printed.size != again.size || memcmp(printed.data, again.data, again.size) != 0)
        bad = report(path, "prints differently after saving and loading", "");
    else if (update) bad = write_file(path, text, head, &printed);
    else if (strlen(text + head) != printed.size || memcmp(text + head, printed.data, printed.size) != 0)
        bad = report_difference(path, text + head, (const char *)printed.data);
    vtrn_buf_fini(&printed);
    vtrn_buf_fini(&bytes);
    vtrn_buf_fini(&again);
    vtrn_prog_destroy(loaded);
    return bad;
}

static int check_file(const char *path, bool update)
{
    struct vtrn_buf text = { 0 };
    struct vtrn_prog *prog = NULL;
    struct vtrn_error err = { 0 };
    enum vtrn_status status;
    const char *marker;
    int bad;

    if (!read_file(path, &text)) return report(path, "cannot be read", strerror(errno));
    status = vtrn_prog_parse((const char *)text.data, text.size, &prog, &err);
    marker = strstr((const char *)text.data, "# error: ");
    if (marker) bad = check_error(path, marker, status, err.text);
    else if (status < 0) bad = report(path, "is refused", err.text);
    else bad = check_program(path, (const char *)text.data, prog, update);
    vtrn_prog_destroy(prog);
    vtrn_buf_fini(&text);
    return bad;
}

int main(int argc, char **argv)
{
    bool update = argc > 1 && strcmp(argv[1], "--update") == 0;
    int bad = argc < 2 + update;

    for (int i = 1 + update; i < argc; i++) bad |= check_file(argv[i], update);
    return bad;
}
