import NighCore

/// The end of a forwarded connection that a program of this device has: a TCP connection, or a double of one in a
/// test. Loop only. It never calls its handler from inside a call.
package protocol LocalConnection: AnyObject {
    /// How many bytes may be written now. Zero or less while the program does not read.
    var writableBytes: Int { get }

    /// Begins to read.
    func start(handler: any LocalConnectionHandler)

    /// Takes all bytes out of `queue` and sends them, now or as soon as the program reads. The caller checks
    /// `writableBytes` first.
    func write(_ queue: inout ByteQueue)

    /// Ends writing once everything was sent. Reading goes on.
    func finishWriting()

    /// Stops reading, which slows the program down.
    func pauseReading()

    /// Goes on reading.
    func resumeReading()

    /// Ends both directions at once, so that the program sees that the connection was reset. Nothing is reported any
    /// more.
    func reset()
}

/// Handles the events of a local connection.
package protocol LocalConnectionHandler: AnyObject {
    /// Bytes have come from the program.
    func received(_ bytes: ByteSlice)

    /// There is room to write again.
    func becameWritable()

    /// The program has sent its last byte.
    func ended()

    /// The connection is over, and nothing more is reported: without an error if both directions have ended in good
    /// order, otherwise because it was reset or has failed.
    func closed(_ error: NighError?)
}

/// Connects to programs of this device.
package protocol LocalDialler: AnyObject, Sendable {
    /// Connects to a port of the loopback addresses. Calls `completion` in a later turn with the connection, which has
    /// to be started in that turn. Loop only.
    func connect(
        to port: UInt16,
        completion: @escaping @Sendable (Result<any LocalConnection, ForwardingRefusal>) -> Void)
}
