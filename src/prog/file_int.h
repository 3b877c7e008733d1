/* The .vtrn file, shared by file.c (writes) and load.c (reads). Everything is little-endian; sections and their parts
 * start at multiples of 8; reserved fields are 0.
 *
 *   header     0  magic           8 bytes  89 56 54 52 4e 0d 0a 1a  (a text-mode transfer breaks it)
 *              8  version         u32      FILE_VERSION
 *             12  sections        u32
 *             16  file size       u64
 *             24  checksum        u64      FNV-1a 64 of the section table
 *   table     32  per section: kind u32, core u32, offset u64, size u64, checksum u64 (FNV-1a 64 of its bytes)
 *   sections, one of each kind (and core), in this order:
 *     TARGET     cores u32, flags u32 (bit 0: replayable), name u32 (string), chip u32 (string), registers u32, 0 u32
 *     STRINGS    count u32, 0 u32, length u32 * count, the bytes without terminators; string 0 is empty
 *     LOCS       count u32, 0 u32, (file u32 (string), line u32) * count; location 0 is "unknown"
 *     TENSORS    count u32, 0 u32, records of FILE_TENSOR_BYTES:
 *                  0 space u8   1 dtype u8   2 rank u8   3 role u8   4 core u8   5 has_address u8   6 addr_partition u16
 *                  8 addr_byte u32   12 name u32 (string)   16 loc u32   20 born u32   24 dim i64 * 8
 *                 88 data u64: CONST: offset in DATA, a multiple of 64; else all ones
 *     CODE       per core: instructions u32, words u32, the wire form (isa/code.c)
 *     EDGES      per core: count u32, 0 u32, (consumer u32, producer u32) * count
 *     DATA       bytes of the constants
 *   Derived facts (sizes, last uses, register count at least) are not stored: loading builds the program by the same
 *   functions that a front end uses. Values bound by the caller (inputs) are not part of a program. */
#ifndef VTRN_FILE_INT_H
#define VTRN_FILE_INT_H
#include "prog/prog_int.h"

enum { FILE_VERSION = 1, FILE_HEADER_BYTES = 32, FILE_ENTRY_BYTES = 32, FILE_TENSOR_BYTES = 96, FILE_DATA_ALIGN = 64 };
enum file_section {
    FILE_TARGET = 1,
    FILE_STRINGS,
    FILE_LOCS,
    FILE_TENSORS,
    FILE_CODE,
    FILE_EDGES,
    FILE_DATA,
    FILE_SECTIONS_MAX = FILE_DATA + 2 * (VTRN_CORES_MAX - 1)
};
enum { FILE_FLAG_REPLAYABLE = 1 };
#define FILE_NO_DATA UINT64_MAX
static const uint8_t file_magic[8] = { 0x89, 'V', 'T', 'R', 'N', '\r', '\n', 0x1a };

static inline void file_put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}
static inline void file_put64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++) at[i] = (uint8_t)(value >> 8 * i);
}
static inline uint32_t file_get32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
static inline uint64_t file_get64(const uint8_t *at) { return (uint64_t)file_get32(at) | (uint64_t)file_get32(at + 4) << 32; }
/* Offset of tensor `tensor`'s data in DATA given the end of what stands before it. */
static inline uint64_t file_align_data(uint64_t offset)
{
    return (offset + FILE_DATA_ALIGN - 1) / FILE_DATA_ALIGN * FILE_DATA_ALIGN;
}
#endif
