import NighCore

/// The line at this end: opens its device, also again after a failure, and knows when the line takes the next frame.
///
/// Loop only.
final class SerialLine {
    enum Event {
        case opened
        case failed(NighError)
        case received(SerialFrame)
        /// The line takes the next frame.
        case isFree
    }

    private static let reopenPause = Moment.Span.seconds(2)
    /// A packet is given to the device this long before the line has sent the packets in front of it. With more, states
    /// would be late.
    private static let lead = Moment.Span.milliseconds(50)

    let rate: SerialRate
    private let makeDevice: () -> any SerialDevice
    private let loop: any EventLoop
    private let report: (Event) -> Void
    private var device: (any SerialDevice)?
    private var reader = SerialFrameReader()
    private var reopenTime: Moment
    /// When the line will have sent all bytes that the device was given.
    private var freeTime: Moment
    private var timer: LoopTimer?

    init(
        _ rate: SerialRate, on loop: any EventLoop, makeDevice: @escaping () -> any SerialDevice,
        report: @escaping (Event) -> Void
    ) {
        self.rate = rate
        self.loop = loop
        self.makeDevice = makeDevice
        self.report = report
        reopenTime = loop.now
        freeTime = loop.now
    }

    var isOpen: Bool { device != nil }

    /// Opens the device, if the last try was long enough ago.
    func open() {
        guard device == nil, loop.now >= reopenTime else { return }
        reopenTime = loop.now + Self.reopenPause
        let new = makeDevice()
        do throws(NighError) {
            try new.open(
                on: loop, received: { [weak self] in self?.received($0) },
                drained: { [weak self] in self?.report(.isFree) },
                failed: { [weak self] in self?.failed($0) })
        } catch {
            return failed(error)
        }
        device = new
        freeTime = loop.now
        report(.opened)
    }

    private func failed(_ error: NighError) {
        device = nil
        reader = SerialFrameReader()
        report(.failed(error))
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        for frame in reader.read(bytes) where isOpen { report(.received(frame)) }
    }

    /// Whether a frame would leave at once. One that waited in this process would be late.
    var isFree: Bool { device?.bytesWaiting == 0 }

    /// Returns whether the line takes a packet now. If not, `isFree` is reported once it does.
    func takesPacket() -> Bool {
        guard isFree else { return false }
        guard loop.now + Self.lead < freeTime else { return true }
        if timer == nil {
            // Half the lead, so that several packets of a fast line share a timer.
            let moment = freeTime + Moment.Span(nanoseconds: -Self.lead.nanoseconds / 2)
            timer = loop.schedule(at: moment) { [weak self] in
                self?.timer = nil
                self?.report(.isFree)
            }
        }
        return false
    }

    func write(_ frame: SerialFrame) {
        let bytes = frame.bytes
        freeTime = max(freeTime, loop.now) + rate.time(of: bytes.count)
        device?.write(bytes)
    }

    /// Closes the device for good.
    func close(sending last: SerialFrame) {
        if let timer { loop.cancel(timer) }
        device?.close(sending: last.bytes)
        device = nil
    }
}
