import NighCore

/// The device at one end of a serial line. Bytes go out and come in, and some are lost.
protocol SerialDevice: AnyObject {
    /// The number of bytes given to `write` that the device has not taken yet.
    var bytesWaiting: Int { get }

    /// Opens the device. All closures are called in later turns of `loop`, and never after `close`.
    ///
    /// - Parameters:
    ///   - received: gets the bytes that arrive.
    ///   - drained: reports that no bytes wait any more.
    ///   - failed: reports that the device has failed. It is closed then.
    func open(
        on loop: any EventLoop, received: @escaping (UnsafeRawBufferPointer) -> Void,
        drained: @escaping () -> Void, failed: @escaping (NighError) -> Void
    ) throws(NighError)

    /// Takes all bytes, and sends them now or later.
    func write(_ bytes: [UInt8])

    /// Closes the device. Drops waiting bytes, and sends as much of `last` as the device takes at once.
    func close(sending last: [UInt8])
}
