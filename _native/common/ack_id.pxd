# Where a message lies, told by the extension that made it to the one that acknowledges, without attribute lookups.
#
# The class of the message offers `__ack_id__`: a capsule named ACK_ID_CAPSULE around a `read_ack_id`, called for
# objects of exactly this class. `holder` is what has the attribute `ack_set` (borrowed, NULL: nothing has).
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t

cdef extern from *:
    """
    #define ACK_ID_CAPSULE "mqclient.ack_id"
    typedef struct {
        int64_t ledger, entry;
        int32_t batch_index, batch_size;
        PyObject *holder;
    } mq_ack_id;
    typedef void (*mq_read_ack_id)(PyObject *message, mq_ack_id *into);
    """
    const char* ACK_ID_CAPSULE
    ctypedef struct ack_id "mq_ack_id":
        int64_t ledger
        int64_t entry
        int32_t batch_index
        int32_t batch_size
        PyObject* holder
    ctypedef void (*read_ack_id "mq_read_ack_id")(PyObject* message, ack_id* into) noexcept
