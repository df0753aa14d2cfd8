/* Big-endian numbers at any address. Reads take a pointer that a cursor (cursor.h) has checked. */

#ifndef MQ_ENDIAN_H
#define MQ_ENDIAN_H

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#  define mq_swap16 __builtin_bswap16
#  define mq_swap32 __builtin_bswap32
#  define mq_swap64 __builtin_bswap64
#  define MQ_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#else
#  include <stdlib.h>
#  define mq_swap16 _byteswap_ushort
#  define mq_swap32 _byteswap_ulong
#  define mq_swap64 _byteswap_uint64
#  define MQ_LITTLE 1
#endif

#define MQ_BIG(bits, n) (MQ_LITTLE ? mq_swap##bits(n) : (n))

static inline int16_t mq_be16(const uint8_t *p) { uint16_t n; memcpy(&n, p, 2); return (int16_t)MQ_BIG(16, n); }
static inline int32_t mq_be32(const uint8_t *p) { uint32_t n; memcpy(&n, p, 4); return (int32_t)MQ_BIG(32, n); }
static inline int64_t mq_be64(const uint8_t *p) { uint64_t n; memcpy(&n, p, 8); return (int64_t)MQ_BIG(64, n); }

static inline void mq_put16(uint8_t *p, int16_t v) { uint16_t n = MQ_BIG(16, (uint16_t)v); memcpy(p, &n, 2); }
static inline void mq_put32(uint8_t *p, int32_t v) { uint32_t n = MQ_BIG(32, (uint32_t)v); memcpy(p, &n, 4); }
static inline void mq_put64(uint8_t *p, int64_t v) { uint64_t n = MQ_BIG(64, (uint64_t)v); memcpy(p, &n, 8); }

#endif
