/* Tables as text and as JSON. Cells are kept as values and formatted when written; column widths follow from the cells.
 * Stands at the end of the picture: commands fill tables, nothing reads them back. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>

#include "report/report.h"

struct cell {
    char *text; /* TEXT, SHAPE */
    int64_t count;
    double real;
};
struct vtrn_table {
    const struct vtrn_column *column;
    int columns;
    struct cell *cell; /* row after row */
    size_t rows, capacity;
    bool short_of_memory;
};

struct vtrn_table *vtrn_table_create(const struct vtrn_column *columns, int count)
{
    struct vtrn_table *table = calloc(1, sizeof *table);

    if (!table) return NULL;
    table->column = columns;
    table->columns = count;
    return table;
}

void vtrn_table_destroy(struct vtrn_table *table)
{
    if (!table) return;
    for (size_t i = 0; i < table->rows * (size_t)table->columns; i++) free(table->cell[i].text);
    free(table->cell);
    free(table);
}

/* ---------------------------------------------------------------- filling */
static bool make_room(struct vtrn_table *table)
{
    size_t wanted = table->capacity ? table->capacity * 2 : 16, bytes;
    struct cell *cell;

    if (table->rows < table->capacity) return true;
    if (!vtrn_mul_size(wanted, (size_t)table->columns * sizeof *cell, &bytes)) return false;
    cell = realloc(table->cell, bytes);
    if (!cell) return false;
    table->cell = cell;
    table->capacity = wanted;
    return true;
}

static bool is_text(const struct vtrn_column *column)
{
    return column->kind == VTRN_COLUMN_TEXT || column->kind == VTRN_COLUMN_SHAPE;
}

void vtrn_table_row(struct vtrn_table *table, ...)
{
    struct cell *cell;
    va_list args;

    if (!make_room(table)) {
        table->short_of_memory = true;
        return;
    }
    cell = &table->cell[table->rows * (size_t)table->columns];
    va_start(args, table);
    for (int c = 0; c < table->columns; c++) {
        cell[c] = (struct cell){ 0 };
        if (is_text(&table->column[c])) {
            const char *text = va_arg(args, const char *);

            cell[c].text = strdup(text ? text : "");
            if (!cell[c].text) table->short_of_memory = true;
        } else if (table->column[c].kind == VTRN_COLUMN_REAL) {
            cell[c].real = va_arg(args, double);
        } else {
            cell[c].count = va_arg(args, int64_t);
        }
    }
    va_end(args);
    table->rows++;
}

/* ---------------------------------------------------------------- numbers */
void vtrn_count_text(int64_t value, char *out)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value), at = 0;

    if (value < 0) out[at++] = '-';
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
}

void vtrn_bytes_text(int64_t value, char *out)
{
    static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
    int u = 0;
    int64_t whole = value;

    while (u < 5 && whole >= 1024 && whole % 1024 == 0) {
        whole /= 1024;
        u++;
    }
    if (whole < 10240 || u == 5 || value < 10 << 20) { /* exact in this unit, and short enough to read */
        vtrn_count_text(whole, out);
        snprintf(out + strlen(out), 8, " %s", unit[u]);
    } else {
        double real = (double)value;

        for (u = 0; u < 5 && real >= 1024; u++) real /= 1024;
        snprintf(out, 32, "%.1f %s", real, unit[u]);
    }
}

/* ---------------------------------------------------------------- text */
/* The cell as text: its own, or formatted into `room` (32 bytes). */
static const char *cell_text(const struct vtrn_table *table, size_t row, int column, char *room)
{
    const struct cell *cell = &table->cell[row * (size_t)table->columns + (size_t)column];

    switch (table->column[column].kind) {
    case VTRN_COLUMN_TEXT:
    case VTRN_COLUMN_SHAPE: return cell->text ? cell->text : "";
    case VTRN_COLUMN_COUNT: vtrn_count_text(cell->count, room); break;
    case VTRN_COLUMN_BYTES: vtrn_bytes_text(cell->count, room); break;
    case VTRN_COLUMN_REAL: snprintf(room, 32, "%.4g", cell->real); break;
    }
    return room;
}

/* Columns on a terminal: bytes that begin a UTF-8 character. */
static int width_of(const char *text)
{
    int width = 0;

    for (; *text; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_padded(FILE *out, const char *text, int width, bool right, bool last)
{
    int gap = width - width_of(text);

    if (right) fprintf(out, "%*s", gap, "");
    for (; *text; text++) fputc(iscntrl((unsigned char)*text) ? '?' : *text, out); /* names of a program may hold anything */
    if (!right && !last) fprintf(out, "%*s", gap, "");
    fputs(last ? "\n" : "  ", out);
}

enum vtrn_status vtrn_table_print(const struct vtrn_table *table, FILE *out)
{
    int *width;
    char room[32];

    if (table->short_of_memory) return VTRN_NOMEM;
    width = calloc((size_t)table->columns + 1, sizeof *width);
    if (!width) return VTRN_NOMEM;
    for (int c = 0; c < table->columns; c++) {
        width[c] = width_of(table->column[c].name);
        for (size_t r = 0; r < table->rows; r++) {
            int w = width_of(cell_text(table, r, c, room));

            if (w > width[c]) width[c] = w;
        }
    }
    for (int c = 0; c < table->columns; c++) {
        char head[64];

        snprintf(head, sizeof head, "%s", table->column[c].name);
        for (char *at = head; *at; at++)
            if (*at == '_') *at = ' ';
        print_padded(out, head, width[c], !is_text(&table->column[c]), c + 1 == table->columns);
    }
    for (size_t r = 0; r < table->rows; r++)
        for (int c = 0; c < table->columns; c++)
            print_padded(out, cell_text(table, r, c, room), width[c], !is_text(&table->column[c]),
                         c + 1 == table->columns);
    free(width);
    return ferror(out) ? VTRN_IO : VTRN_OK;
}

/* ---------------------------------------------------------------- JSON */
/* jansson takes UTF-8 only; names come from users' files, so other bytes become U+FFFD rather than an error. */
static json_t *json_text(const char *text)
{
    json_t *value = json_string(text);
    struct vtrn_buf buf = { 0 };

    if (value) return value;
    for (; *text; text++)
        if (vtrn_buf_append(&buf, (unsigned char)*text < 0x80 ? text : "\xef\xbf\xbd", (unsigned char)*text < 0x80 ? 1 : 3) < 0) break;
    value = *text ? NULL : json_stringn((const char *)buf.data, buf.size);
    vtrn_buf_fini(&buf);
    return value;
}

static json_t *json_shape(const char *text)
{
    json_t *list = json_array();
    char *end;

    for (; list && *text; text = *end ? end + 1 : end)
        if (json_array_append_new(list, json_integer(strtoll(text, &end, 10))) < 0 || end == text) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *json_cell(const struct cell *cell, enum vtrn_column_kind kind)
{
    switch (kind) {
    case VTRN_COLUMN_TEXT: return json_text(cell->text);
    case VTRN_COLUMN_SHAPE: return json_shape(cell->text);
    case VTRN_COLUMN_COUNT:
    case VTRN_COLUMN_BYTES: return json_integer(cell->count);
    case VTRN_COLUMN_REAL: return isfinite(cell->real) ? json_real(cell->real) : json_null();
    }
    return NULL;
}

json_t *vtrn_table_json(const struct vtrn_table *table)
{
    json_t *rows = table->short_of_memory ? NULL : json_array();

    for (size_t r = 0; rows && r < table->rows; r++) {
        json_t *object = json_object();

        for (int c = 0; object && c < table->columns; c++) {
            json_t *value = json_cell(&table->cell[r * (size_t)table->columns + (size_t)c], table->column[c].kind);

            if (json_object_set_new(object, table->column[c].name, value) < 0) { /* also when value is NULL */
                json_decref(object);
                object = NULL;
            }
        }
        if (!object || json_array_append_new(rows, object) < 0) {
            json_decref(rows);
            rows = NULL;
        }
    }
    return rows;
}

enum vtrn_status vtrn_json_print(json_t *value, FILE *out)
{
    int bad;

    if (!value) return VTRN_NOMEM;
    bad = json_dumpf(value, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(value);
    if (bad || fputc('\n', out) == EOF) return VTRN_IO;
    return VTRN_OK;
}
