# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The hand-over of messages to the user, and the futures of messages sent: what runs per message without entering.

Surface and meaning: mqclient/_native/handover.pyi. A Mailbox changes its state without running Python code in between,
so that one call is one step under the GIL; for builds without the GIL each step is a critical section.
"""

cimport cython
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject

from mqclient.errors import DeadlineError

cdef extern from *:
    """
    /* The item becomes the caller's; None stays in the list, which so keeps nothing alive that was taken. */
    static inline PyObject *mq_steal(PyObject *list, Py_ssize_t index) {
        PyObject *item;
        if (index >= PyList_GET_SIZE(list)) {  /* its owner promised not to touch it */
            Py_INCREF(Py_None);
            return Py_None;
        }
        item = PyList_GET_ITEM(list, index);
        Py_INCREF(Py_None);
        PyList_SET_ITEM(list, index, Py_None);
        return item;
    }
    """
    object mq_steal(list messages, Py_ssize_t index)

include "handover/mailbox.pxi"
include "handover/future.pxi"
