/* Interval packing of on-chip tensors by lifetime.
 *
 * A lifetime goes from the first to the last instruction that names a tensor, to the end of a loop that needs it again. Each
 * 32-partition quadrant has a map of its bytes: who was there last, and until which instruction. Tensors are placed in the
 * order of their first use: long-lived ones at the lowest address that is free, short-lived ones behind the last such (next
 * fit), so that a tile does not wait for the tile just before it when there is other room: what compilers call rotation.
 * PSUM tensors up to a bank's size do not cross banks.
 *
 * Given addresses are never moved: an automatic tensor avoids those that are used while it lives. */
#include "place/place.h"

#include "place/place_int.h"

enum { LONG_SHARE = 4, LONG_LEAST = 64 /* lives through more than a fourth of a list that is not tiny */ };
#define NOBODY UINT32_MAX

/* ---------------------------------------------------------------- one quadrant's map */
static uint32_t piece_at(const struct place_map *map, uint32_t byte)
{
    uint32_t low = 0, high = map->count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (map->piece[middle].low <= byte) low = middle;
        else high = middle;
    }
    return low;
}

static uint32_t piece_end(const struct place_map *map, uint32_t i) { return i + 1 < map->count ? map->piece[i + 1].low : map->size; }

/* Lowest byte from `from` on where `size` bytes are dead at `now`; UINT32_MAX: none. */
static uint32_t find_dead(const struct place_map *map, uint32_t from, uint32_t size, uint32_t now)
{
    uint32_t start = from;

    if (from >= map->size || size > map->size - from) return NOBODY;
    for (uint32_t i = piece_at(map, from); i < map->count; i++) {
        const struct place_piece *piece = &map->piece[i];

        if (piece->owner != NOBODY && piece->until >= now) start = piece_end(map, i);
        else if (piece_end(map, i) - start >= size) return start;
        if (start > map->size - size) return NOBODY;
    }
    return NOBODY;
}

/* Makes a piece begin at `byte`; returns its index. */
static uint32_t split(struct place_map *map, uint32_t byte)
{
    uint32_t i;

    if (byte >= map->size) return map->count;
    i = piece_at(map, byte);
    if (map->piece[i].low == byte) return i;
    memmove(&map->piece[i + 2], &map->piece[i + 1], (map->count - i - 1) * sizeof *map->piece);
    map->piece[i + 1] = map->piece[i];
    map->piece[i + 1].low = byte;
    map->count++;
    return i + 1;
}

static enum vtrn_status reserve_pieces(struct place_map *map, struct vtrn_error *err)
{
    struct place_piece *grown;

    if (map->count + 2 <= map->capacity) return VTRN_OK;
    grown = realloc(map->piece, ((size_t)map->capacity * 2 + 16) * sizeof *grown);
    VTRN_FAIL_IF(!grown, err, VTRN_NOMEM, "no memory for the map of on-chip memory");
    map->piece = grown;
    map->capacity = map->capacity * 2 + 16;
    return VTRN_OK;
}

static enum vtrn_status take(struct place_state *state, int quadrant, uint32_t low, uint32_t high, uint32_t tensor)
{
    struct place_map *map = &state->map[quadrant];
    const struct vtrn_tensor *t = &state->place->prog->tensor[tensor];
    uint32_t first, end, until = t->last_use;

    VTRN_TRY(reserve_pieces(map, state->err));
    first = split(map, low);
    end = split(map, high);
    for (uint32_t i = first; i < end; i++)
        if (map->piece[i].owner != NOBODY && map->piece[i].until > until) until = map->piece[i].until; /* given addresses alias */
    map->piece[first] = (struct place_piece){ low, tensor, until };
    if (end > first + 1) memmove(&map->piece[first + 1], &map->piece[end], (map->count - end) * sizeof *map->piece);
    map->count -= end - first - 1;
    return VTRN_OK;
}

/* ---------------------------------------------------------------- choosing */
static unsigned quadrants_of(uint32_t partition, uint32_t partitions)
{
    unsigned mask = 0;

    for (uint32_t q = partition / 32; q <= (partition + partitions - 1) / 32; q++) mask |= 1u << q;
    return mask;
}

/* The next address from `low` on that the rules of the space allow. */
static uint32_t legal_byte(const struct place_state *state, uint32_t low, uint32_t size)
{
    uint32_t bank = state->bank_bytes;

    low = (low + 3) & ~3u;
    if (!bank) return low;
    if (size >= bank) return (low + bank - 1) / bank * bank;
    return low / bank == (low + size - 1) / bank ? low : (low / bank + 1) * bank;
}

/* Behind every given address that is used while the tensor lives and that [low, low + size) meets; `low` when there is none. */
static uint32_t past_given(const struct place_state *state, const struct vtrn_tensor *t, unsigned mask, uint32_t low, uint32_t size)
{
    const struct vtrn_prog *prog = state->place->prog;

    for (uint32_t i = state->next_given; i < state->givens && prog->tensor[state->given[i]].first_use <= t->last_use; i++) {
        const struct vtrn_tensor *g = &prog->tensor[state->given[i]];

        if (g->addr_byte < low + size && low < g->addr_byte + g->row_bytes && (quadrants_of(g->addr_partition, g->partitions) & mask))
            return g->addr_byte + (uint32_t)g->row_bytes;
    }
    return low;
}

static uint32_t find_room(const struct place_state *state, const struct vtrn_tensor *t, unsigned mask, uint32_t from)
{
    uint32_t low = from, size = (uint32_t)t->row_bytes;

    for (;;) {
        uint32_t start = low = legal_byte(state, low, size);

        for (int q = 0; q < state->quadrants; q++) {
            if (!(mask >> q & 1)) continue;
            low = find_dead(&state->map[q], low, size, t->first_use);
            if (low == NOBODY) return NOBODY;
        }
        low = past_given(state, t, mask, low, size);
        if (low == start) return low;
    }
}

/* Where a tensor may begin, by its partitions: the hardware's start-partition rule. */
static int start_step(uint32_t partitions) { return partitions > 64 ? 4 : partitions > 32 ? 2 : 1; }

static bool choose(struct place_state *state, const struct vtrn_tensor *t, struct vtrn_spot *spot)
{
    bool is_long = t->last_use - t->first_use > state->insts / LONG_SHARE + LONG_LEAST;
    int step = start_step(t->partitions);

    for (int again = 0; again < 2; again++) /* behind the last one, then from the bottom */
        for (int q = 0; q < PLACE_QUADRANTS; q += step) {
            uint32_t from = is_long || again ? 0 : state->cursor;
            uint32_t low = find_room(state, t, quadrants_of((uint32_t)q * 32, t->partitions), from);

            if (low == NOBODY) continue;
            *spot = (struct vtrn_spot){ low, (uint16_t)(q * 32), VTRN_SPOT_CHOSEN };
            if (!is_long) state->cursor = low + (uint32_t)t->row_bytes;
            return true;
        }
    return false;
}

/* Until a tensor leaves out a quadrant, all four maps are alike and only the first is kept. */
static enum vtrn_status part_quadrants(struct place_state *state)
{
    state->quadrants = PLACE_QUADRANTS;
    for (int q = 1; q < PLACE_QUADRANTS; q++) {
        state->map[q].count = 0;
        while (state->map[q].capacity < state->map[0].count + 2) {
            state->map[q].count = state->map[q].capacity;
            VTRN_TRY(reserve_pieces(&state->map[q], state->err));
        }
        memcpy(state->map[q].piece, state->map[0].piece, state->map[0].count * sizeof *state->map[0].piece);
        state->map[q].count = state->map[0].count;
    }
    return VTRN_OK;
}

static enum vtrn_status place_one(struct place_state *state, uint32_t tensor)
{
    const struct vtrn_tensor *t = &state->place->prog->tensor[tensor];
    struct vtrn_spot *spot = &state->place->spot[tensor];
    struct vtrn_place_use *use = state->use;
    unsigned mask;

    if (state->quadrants == 1 && (t->has_address || start_step(t->partitions) < PLACE_QUADRANTS)) VTRN_TRY(part_quadrants(state));
    if (t->has_address) {
        *spot = (struct vtrn_spot){ t->addr_byte, t->addr_partition, VTRN_SPOT_GIVEN };
        while (state->next_given < state->givens && state->given[state->next_given] != tensor) state->next_given++;
    } else if (!choose(state, t, spot)) {
        spot->kind = VTRN_SPOT_SPILLED;
        use->spilled++;
        use->spilled_bytes += t->row_bytes * t->partitions;
        return VTRN_OK;
    } else if (spot->byte + t->row_bytes > use->top_bytes) {
        use->top_bytes = spot->byte + (uint32_t)t->row_bytes;
    }
    mask = quadrants_of(spot->partition, t->partitions);
    for (int q = 0; q < state->quadrants; q++)
        if (mask >> q & 1) VTRN_TRY(take(state, q, spot->byte, spot->byte + (uint32_t)t->row_bytes, tensor));
    return VTRN_OK;
}

/* ---------------------------------------------------------------- one memory of one core */
static void reset_maps(struct place_state *state, const struct vtrn_arch *arch, int space)
{
    uint32_t physical = (uint32_t)(space == VTRN_PLACE_PSUM ? arch->psum_banks * arch->psum_bank_bytes : arch->sbuf_partition_bytes);

    for (int q = 0; q < PLACE_QUADRANTS; q++) {
        struct place_map *map = &state->map[q];

        /* Given addresses may reach into what kernels may not use; chosen ones may not: that part is nobody's, for ever live. */
        map->size = physical;
        map->count = 1;
        map->piece[0] = (struct place_piece){ 0, NOBODY, 0 };
        if (state->use->limit_bytes < physical) {
            map->piece[1] = (struct place_piece){ (uint32_t)state->use->limit_bytes, PLACE_RESERVED, UINT32_MAX };
            map->count = 2;
        }
    }
    state->cursor = 0;
    state->next_given = 0;
    state->quadrants = 1;
}

static enum vtrn_status place_memory(struct place_state *state, const struct vtrn_arch *arch, int core, int space)
{
    struct vtrn_place *place = state->place;
    const struct vtrn_prog *prog = place->prog;
    uint32_t keys = 0;

    state->use = &place->use[core][space];
    state->use->limit_bytes = space == VTRN_PLACE_PSUM ? arch->psum_banks * arch->psum_bank_bytes : arch->sbuf_usable_bytes;
    state->bank_bytes = space == VTRN_PLACE_PSUM ? (uint32_t)arch->psum_bank_bytes : 0;
    state->insts = prog->code[core].count;
    state->givens = 0;
    for (uint32_t t = 0; t < prog->tensors; t++) {
        const struct vtrn_tensor *tensor = &prog->tensor[t];

        if (tensor->core != core || tensor->first_use == UINT32_MAX) continue;
        if (tensor->space != (space == VTRN_PLACE_PSUM ? VTRN_PSUM : VTRN_SBUF)) continue;
        state->key[keys++] = (struct place_key){ tensor->first_use, t };
    }
    place_sort(state->key, keys);
    for (uint32_t i = 0; i < keys; i++)
        if (prog->tensor[state->key[i].tensor].has_address) state->given[state->givens++] = state->key[i].tensor;
    reset_maps(state, arch, space);
    for (uint32_t i = 0; i < keys; i++) VTRN_TRY(place_one(state, state->key[i].tensor));
    place_measure(state, keys);
    return VTRN_OK;
}

static enum vtrn_status place_all(struct place_state *state, const struct vtrn_arch *arch)
{
    for (int core = 0; core < state->place->prog->cores; core++)
        for (int space = 0; space < VTRN_PLACE_SPACES; space++) VTRN_TRY(place_memory(state, arch, core, space));
    return VTRN_OK;
}

enum vtrn_status vtrn_place_create(const struct vtrn_prog *prog, const struct vtrn_arch *arch, struct vtrn_place **place_out,
                                   struct vtrn_error *err)
{
    struct vtrn_place *place = calloc(1, sizeof *place);
    struct place_state state = { .place = place, .err = err };
    size_t room = (size_t)prog->tensors + 1;
    enum vtrn_status status = VTRN_NOMEM;
    bool good = place != NULL;

    if (place) {
        place->prog = prog;
        place->spot = calloc(room, sizeof *place->spot);
        state.key = malloc(room * sizeof *state.key);
        state.given = malloc(room * sizeof *state.given);
        good = place->spot && state.key && state.given;
        for (int q = 0; q < PLACE_QUADRANTS; q++) good = reserve_pieces(&state.map[q], NULL) >= 0 && good;
    }
    if (good) status = place_all(&state, arch ? arch : prog->arch);
    else vtrn_fail(err, VTRN_NOMEM, "no memory to place %u tensors", prog->tensors);
    free(state.key);
    free(state.given);
    for (int q = 0; q < PLACE_QUADRANTS; q++) free(state.map[q].piece);
    if (status < 0) vtrn_place_destroy(place);
    else *place_out = place;
    return status;
}

void vtrn_place_destroy(struct vtrn_place *place)
{
    if (!place) return;
    free(place->spot);
    free(place);
}
