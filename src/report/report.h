/* report: writes results for people and for programs. A table is filled row by row and written as aligned text, or as
 * JSON with the same columns, so that the two can never say different things. Knows nothing of where the rows come from. */
#ifndef VTRN_REPORT_H
#define VTRN_REPORT_H
#include <jansson.h>

#include "base/base.h"

enum vtrn_column_kind {
    VTRN_COLUMN_TEXT,
    VTRN_COLUMN_SHAPE, /* text "256x512"; a list of numbers in JSON */
    VTRN_COLUMN_COUNT, /* an integer */
    VTRN_COLUMN_BYTES,
    VTRN_COLUMN_REAL
};
struct vtrn_column {
    const char *name; /* the JSON key; text shows it with spaces for underscores */
    enum vtrn_column_kind kind;
};
struct vtrn_table;

/* `columns` must outlive the table. NULL: no memory. */
struct vtrn_table *vtrn_table_create(const struct vtrn_column *columns, int count);
void vtrn_table_destroy(struct vtrn_table *table);
/* Adds a row: one value for each column, in order: const char * (TEXT, SHAPE; copied; NULL: empty), int64_t (COUNT, BYTES),
 * double (REAL). A lack of memory is remembered: the writers report it. */
void vtrn_table_row(struct vtrn_table *table, ...);
/* Text with a header line: words left, numbers right, counts with thousands marks. */
enum vtrn_status vtrn_table_print(const struct vtrn_table *table, FILE *out);
/* A new array of one object a row, with plain numbers; NULL: no memory. */
json_t *vtrn_table_json(const struct vtrn_table *table);
/* Writes `value` indented with a line feed, and releases it. NOMEM for NULL, IO when `out` fails. */
enum vtrn_status vtrn_json_print(json_t *value, FILE *out);

/* "1,234,567"; `out` holds at least 32 bytes. */
void vtrn_count_text(int64_t value, char *out);
/* "96 GiB", "212,984 B": the largest unit that is exact; long numbers with one decimal. `out` holds at least 32 bytes. */
void vtrn_bytes_text(int64_t value, char *out);
#endif
