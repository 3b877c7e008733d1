/* Runs a fuzz target over files, in builds without libFuzzer: replay FOLDER|FILE ... Each input is tried as it is and
 * with a few hundred mutations that are the same on every run, so the test does some fuzzing of its own. */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

enum { MUTATIONS = 200, PATH_BYTES = 1024 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Flips, overwrites, copies or cuts. */
static size_t mutate(uint8_t *bytes, size_t size, uint64_t *state)
{
    int changes = 1 + (int)(next_random(state) % 4);

    for (int i = 0; i < changes && size; i++) {
        size_t at = (size_t)(next_random(state) % size), from = (size_t)(next_random(state) % size);
        uint64_t kind = next_random(state) % 8;

        if (kind < 3) bytes[at] ^= (uint8_t)(1 << next_random(state) % 8);
        else if (kind < 5) bytes[at] = (uint8_t)next_random(state);
        else if (kind < 6) memset(bytes + at, next_random(state) & 1 ? 0xff : 0, size - at < 4 ? size - at : 4);
        else if (kind < 7)
            memmove(bytes + at, bytes + from, size - (at > from ? at : from) < 16 ? size - (at > from ? at : from) : 16);
        else if (i == 0) size = at;
    }
    return size;
}

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct vtrn_buf bytes = { 0 };
    uint8_t *copy;
    uint64_t state;
    size_t got;

    if (!file) {
        fprintf(stderr, "%s cannot be read\n", path);
        return 1;
    }
    do {
        if (vtrn_buf_reserve(&bytes, 4096) < 0) abort();
        got = fread(bytes.data + bytes.size, 1, bytes.capacity - bytes.size, file);
        bytes.size += got;
    } while (got);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes.data, bytes.size);
    copy = malloc(bytes.size + 1);
    state = vtrn_hash_bytes(bytes.data, bytes.size, 1) | 1;
    for (int i = 0; copy && i < MUTATIONS; i++) {
        memcpy(copy, bytes.data, bytes.size);
        LLVMFuzzerTestOneInput(copy, mutate(copy, bytes.size, &state));
    }
    free(copy);
    vtrn_buf_fini(&bytes);
    return 0;
}

/* Files of a folder in any order: each is judged by itself. */
static int replay(const char *path, int *files)
{
    struct stat info;
    DIR *folder;
    int bad = 0;

    if (stat(path, &info) != 0) {
        fprintf(stderr, "%s does not exist\n", path);
        return 1;
    }
    if (!S_ISDIR(info.st_mode)) {
        ++*files;
        return replay_file(path);
    }
    folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char inside[PATH_BYTES];

        if (entry->d_name[0] == '.') continue;
        if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) < (int)sizeof inside) bad |= replay(inside, files);
    }
    if (folder) closedir(folder);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = argc < 2, files = 0;

    for (int i = 1; i < argc; i++) bad |= replay(argv[i], &files);
    printf("%d inputs, each with %d mutations\n", files, MUTATIONS);
    return bad || files == 0;
}
