import CUV
import Glibc
import NighCore

/// A libuv handle, its memory, and the object behind it, such as a socket or a descriptor watch.
///
/// Every handle on a `UVEventLoop` that is not the loop's own is one of these, and libuv's `data` points to its object.
/// So a loop that ends can close the handles that its users have left open. The object lives at least until libuv has
/// released the memory. Loop only. It is for transports that use libuv's own streams. To wait for a descriptor, use a
/// `DescriptorWatch`.
open class UVHandle {
    /// libuv's memory. Valid until the handle is closed and its loop has taken one more turn.
    public let memory: UnsafeMutableRawPointer
    /// Whether `close` was called, by the owner or by a loop that ends.
    public private(set) var isClosed = false

    /// Allocates the memory for a handle of `type`. `initialize` initialises the handle there and returns libuv's
    /// status.
    public init(
        _ type: uv_handle_type, initialize: (UnsafeMutableRawPointer) -> Int32
    ) throws(UVError) {
        memory = .allocate(byteCount: uv_handle_size(type), alignment: 16)
        let status = initialize(memory)
        guard status == 0 else {
            memory.deallocate()
            throw UVError(code: status)
        }
        handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    }

    /// The memory as the type that all handles have in common.
    public final var handle: UnsafeMutablePointer<uv_handle_t> {
        memory.assumingMemoryBound(to: uv_handle_t.self)
    }

    /// Closes the handle. No callback of it is called any more, except those of requests, which fail as cancelled.
    open func close() {
        guard !isClosed else { return }
        isClosed = true
        uv_close(handle) { handle in
            guard let handle, let data = handle.pointee.data else { return }
            handle.deallocate()
            Unmanaged<UVHandle>.fromOpaque(data).release()
        }
    }

    /// Calls `body` with the object behind a handle that libuv passes to a callback. libuv's own reference keeps the
    /// object alive meanwhile, so none is taken.
    @inline(__always)
    public static func with<Object: UVHandle>(
        _ data: UnsafeMutableRawPointer, as type: Object.Type, _ body: (Object) -> Void
    ) {
        Unmanaged<UVHandle>.fromOpaque(data)._withUnsafeGuaranteedRef { body(unsafeDowncast($0, to: type)) }
    }
}

/// An error that libuv returned: the negative of an `errno`, or a number of libuv's own.
public struct UVError: Error, Hashable, CustomStringConvertible {
    /// The number as libuv returned it, below zero.
    public let code: Int32

    /// Creates the error that libuv returned as `code`.
    public init(code: Int32) { self.code = code }

    /// The operating system's number, above zero.
    public var number: Int32 { -code }

    /// libuv's text for the error.
    public var description: String { String(cString: uv_strerror(code)) }

    /// The error as the cause of a `NighError`, with libuv's text unchanged.
    public var cause: NighError.Cause { .system(number, description) }
}
