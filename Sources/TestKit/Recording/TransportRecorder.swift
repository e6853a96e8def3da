import NighCore

/// Records the events of a transport, and what its pipes receive. A test starts a transport with it, and reads the
/// record or waits for what it expects; any thread may do both.
///
/// The monitor guards what is recorded; hence `@unchecked Sendable`.
public final class TransportRecorder: TransportEventHandler, @unchecked Sendable {
    /// Wakes the threads that wait. Others may guard with it what they wait for together with the events.
    package let monitor = Monitor()
    private let onPipe: (PipeRecorder) -> Void
    private var recordedEvents: [TransportEvent] = []
    private var recordedPipes: [PipeRecorder] = []

    /// Creates a recorder.
    ///
    /// - Parameter onPipe: called on the loop with each new pipe once reading has begun, before the pipe is recorded.
    public init(onPipe: @escaping (PipeRecorder) -> Void = { _ in }) { self.onPipe = onPipe }

    /// The events so far.
    public var events: [TransportEvent] { monitor.read { recordedEvents } }

    /// The descriptions of the events so far.
    public var log: [String] { events.map(\.description) }

    /// The pipes that were opened, dialled and accepted.
    public var pipes: [PipeRecorder] { monitor.read { recordedPipes } }

    /// The addresses at which the transport last said that it listens.
    public var listening: [TransportAddress] {
        events.compactMap { if case .listeningChanged(let addresses) = $0 { addresses } else { nil } }.last
            ?? []
    }

    /// The errors of dials that failed.
    public var dialFailures: [NighError] {
        events.compactMap { if case .dialFailed(_, let error) = $0 { error } else { nil } }
    }

    /// Returns the descriptions of the events since the last call of this, and forgets those events.
    public func takeLog() -> [String] {
        monitor.change {
            defer { recordedEvents = [] }
            return log
        }
    }

    /// Waits until `isTrue` returns true, for at most `duration`, which is longer on a busy machine. Calls `isTrue`
    /// after every event of the transport or of a pipe. Returns whether it became true.
    public func wait(
        within duration: Duration = .seconds(20), until isTrue: (TransportRecorder) -> Bool
    ) -> Bool { monitor.wait(within: duration) { isTrue(self) } }

    /// Records the event, and begins to read a new pipe.
    public func handle(_ event: TransportEvent, by transport: any Transport) {
        monitor.change {
            if case .pipeOpened(let pipe, let dial) = event {
                let recorder = PipeRecorder(pipe, dial: dial, monitor)
                onPipe(recorder)
                recordedPipes.append(recorder)
            }
            recordedEvents.append(event)
        }
    }
}
