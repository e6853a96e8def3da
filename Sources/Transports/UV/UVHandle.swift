import CUV
import Glibc
import NighCore

/// A libuv handle, its memory, and the object behind it: sockets, descriptor watches.
///
/// Every handle on a `UVEventLoop` that is not the loop's own is one of these, with its object in libuv's `data`, so that a loop
/// that ends can close what its users have left open. The object lives at least until libuv has let go of the memory.
/// Loop only. For transports that use libuv's own streams; who only waits for a descriptor takes a `DescriptorWatch`.
open class UVHandle {
    /// libuv's memory; valid until the handle is closed and its loop has taken one more turn.
    public let memory: UnsafeMutableRawPointer
    /// Whether `close` was called, by the owner or by a loop that ends.
    public private(set) var isClosed = false

    /// Memory for a handle of `type`, brought to life by `initialize`, which is handed the memory and returns libuv's word.
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

    /// The memory as what all handles have in common.
    public final var handle: UnsafeMutablePointer<uv_handle_t> {
        memory.assumingMemoryBound(to: uv_handle_t.self)
    }

    /// Lets go of the handle; no callback of it is called any more but those of requests, which fail as cancelled.
    open func close() {
        guard !isClosed else { return }
        isClosed = true
        uv_close(handle) { handle in
            guard let handle, let data = handle.pointee.data else { return }
            handle.deallocate()
            Unmanaged<UVHandle>.fromOpaque(data).release()
        }
    }

    /// Calls `body` with the object behind a handle that libuv calls back with; libuv's own reference keeps it alive meanwhile,
    /// so that none is taken.
    @inline(__always)
    public static func with<Object: UVHandle>(
        _ data: UnsafeMutableRawPointer, as type: Object.Type, _ body: (Object) -> Void
    ) {
        Unmanaged<UVHandle>.fromOpaque(data)._withUnsafeGuaranteedRef { body(unsafeDowncast($0, to: type)) }
    }

    /// The object behind a handle that libuv calls back with.
    @inline(__always)
    public static func object<Object: UVHandle>(
        of data: UnsafeMutableRawPointer, as type: Object.Type
    ) -> Object {
        unsafeDowncast(Unmanaged<UVHandle>.fromOpaque(data).takeUnretainedValue(), to: type)
    }
}

/// What libuv says when something cannot be: the negative of an `errno`, or a number of its own.
public struct UVError: Error, Hashable, CustomStringConvertible {
    /// As libuv returned it, below zero.
    public let code: Int32

    /// The error that libuv returned as `code`.
    public init(code: Int32) { self.code = code }

    /// The operating system's number, above zero.
    public var number: Int32 { -code }

    /// libuv's words.
    public var description: String { String(cString: uv_strerror(code)) }

    /// What helps where it says that something has run out.
    public var shortageAdvice: String? {
        switch number {
        case EMFILE, ENFILE: "too many descriptors are open: raise `ulimit -n`"
        default: nil
        }
    }

    /// As the cause of an error, word for word.
    public var cause: NighError.Cause { .system(number, description) }
}
