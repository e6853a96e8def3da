import Glibc

/// The list of slices that one write passes to the kernel. All streams of a loop use the same list, one after the
/// other, so a write allocates nothing. Loop only.
package final class GatherList {
    /// Enough for a message of 1 MiB in frames of 16 KiB, with their headers, in one call.
    package static let capacity = 256

    let pieces = UnsafeMutableBufferPointer<iovec>.allocate(capacity: capacity)

    deinit { pieces.deallocate() }
}
