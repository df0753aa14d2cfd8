/* Text of the wire as Python strings: the ASCII case by one copy, everything else by the decoder with replacement. */

#ifndef MQ_TEXT_H
#define MQ_TEXT_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

static inline int mq_is_ascii(const uint8_t *p, Py_ssize_t n) {
    uint64_t high = 0, word;
    for (; n >= 8; p += 8, n -= 8) { memcpy(&word, p, 8); high |= word; }
    for (; n > 0; p++, n--) high |= *p;
    return !(high & 0x8080808080808080u);
}

static inline PyObject *mq_text(const uint8_t *p, Py_ssize_t n) {
    if (n < 2 || !mq_is_ascii(p, n)) return PyUnicode_DecodeUTF8((const char *)p, n, "replace");
    PyObject *text = PyUnicode_New(n, 127);
    if (text != NULL) memcpy(PyUnicode_1BYTE_DATA(text), p, (size_t)n);
    return text;
}

/* True if `text` is ASCII and just these bytes. */
static inline int mq_same(PyObject *text, const uint8_t *p, Py_ssize_t n) {
    return text != NULL && PyUnicode_GET_LENGTH(text) == n && PyUnicode_IS_COMPACT_ASCII(text)
        && memcmp(PyUnicode_1BYTE_DATA(text), p, (size_t)n) == 0;
}

/* `mq_text`, but the string in `memo` if it is the same; a new one of at most `keep` ASCII bytes takes its place. */
static inline PyObject *mq_text_memo(PyObject **memo, const uint8_t *p, Py_ssize_t n, Py_ssize_t keep) {
    if (mq_same(*memo, p, n)) { Py_INCREF(*memo); return *memo; }
    PyObject *text = mq_text(p, n);
    if (text != NULL && n <= keep && PyUnicode_IS_COMPACT_ASCII(text)) {
        PyObject *old = *memo;
        Py_INCREF(text);
        *memo = text;
        Py_XDECREF(old);
    }
    return text;
}

static inline void mq_hex(uint8_t *out, const uint8_t *p, Py_ssize_t n) {
    static const char digits[] = "0123456789ABCDEF";
    for (Py_ssize_t i = 0; i < n; i++) { out[2 * i] = digits[p[i] >> 4]; out[2 * i + 1] = digits[p[i] & 15]; }
}

#endif
