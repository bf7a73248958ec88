/* Byte layouts of rankwise. Generated from the wire module of rankwise-protocol: do not edit.
 * Little endian throughout. */
#ifndef RANKWISE_WIRE_H
#define RANKWISE_WIRE_H

#ifdef __cplusplus
#define RANKWISE_STATIC_ASSERT static_assert
#else
#define RANKWISE_STATIC_ASSERT _Static_assert
#endif

/* first bytes of a record and of a board */
#define RANKWISE_MAGIC 0x4b574e52u

/* layout version */
#define RANKWISE_VERSION 1u

/* bytes of a record slot */
#define RANKWISE_RECORD_BYTES 256

/* bytes of a record before its payload */
#define RANKWISE_RECORD_HEADER_BYTES 40

/* bytes of payload at most */
#define RANKWISE_PAYLOAD_BYTES_MAX 216

/* distance of words that different ranks write */
#define RANKWISE_LINE_BYTES 128

RANKWISE_STATIC_ASSERT(RANKWISE_RECORD_HEADER_BYTES + RANKWISE_PAYLOAD_BYTES_MAX == RANKWISE_RECORD_BYTES,
                       "header and payload fill a record slot");
RANKWISE_STATIC_ASSERT(RANKWISE_RECORD_BYTES % RANKWISE_LINE_BYTES == 0,
                       "record slots of different ranks share no line");
RANKWISE_STATIC_ASSERT((RANKWISE_LINE_BYTES & (RANKWISE_LINE_BYTES - 1)) == 0,
                       "a line is a power of two");

#endif
