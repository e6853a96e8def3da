/// The end of a stream at which a program reads the bytes of a peer.
final class PeerInputStream: InputStream {
    private let input: StreamInput
    private let events: StreamEvents

    init(_ input: StreamInput) {
        self.input = input
        events = StreamEvents(.hasBytesAvailable) { input.view }
        super.init(data: Data())
        events.attach(to: self)
        input.observe { [events] in events.changed() }
    }

    deinit { close() }

    override func open() { events.open() }

    override func close() { if events.close() { input.close() } }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard events.isOpen else { return -1 }
        let count = input.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: len))
        events.changed()
        return count
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
    ) -> Bool { false }

    /// False at the end, so that a loop that reads while there are bytes comes to one.
    override var hasBytesAvailable: Bool { events.isOpen && input.view.isReady }

    override var delegate: (any StreamDelegate)? {
        get { events.delegate }
        set { events.delegate = newValue }
    }

    override var streamStatus: Status { events.status }

    override var streamError: (any Error)? { input.view.error }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        events.schedule(self, in: aRunLoop, mode: mode)
    }

    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        events.remove(from: aRunLoop, mode: mode)
    }

    override func property(forKey key: PropertyKey) -> AnyObject? { nil }

    override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool { false }
}
