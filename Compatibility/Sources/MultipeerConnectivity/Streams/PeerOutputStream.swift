/// The end of a stream at which a program writes bytes for a peer.
final class PeerOutputStream: OutputStream {
    private let output: StreamOutput
    private let events: StreamEvents

    init(_ output: StreamOutput) {
        self.output = output
        events = StreamEvents(.hasSpaceAvailable) { output.view }
        super.init(toMemory: ())
        events.attach(to: self)
        output.observe { [events] in events.changed() }
    }

    /// Foundation asks for it. A stream that was made so has no peer.
    required init(toMemory: ()) {
        let output = StreamOutput()
        self.output = output
        events = StreamEvents(.hasSpaceAvailable) { output.view }
        super.init(toMemory: ())
    }

    deinit { close() }

    override func open() { events.open() }

    override func close() { if events.close() { output.close() } }

    override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
        guard events.isOpen else { return -1 }
        let count = output.write(UnsafeRawBufferPointer(start: buffer, count: len))
        events.changed()
        return count
    }

    override var hasSpaceAvailable: Bool { events.isOpen && output.view.isReady }

    override var delegate: (any StreamDelegate)? {
        get { events.delegate }
        set { events.delegate = newValue }
    }

    override var streamStatus: Status { events.status }

    override var streamError: (any Error)? { output.view.error }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        events.schedule(self, in: aRunLoop, mode: mode)
    }

    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        events.remove(from: aRunLoop, mode: mode)
    }

    override func property(forKey key: PropertyKey) -> AnyObject? { nil }

    override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { false }
}
