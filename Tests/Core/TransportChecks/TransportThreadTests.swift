import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests the rules about threads, with real threads.
@Suite struct TransportThreadTests {
    /// Events that are correct except for the thread they are reported on.
    private static let reportNames: [String] = [
        "routeFound", "routeChanged", "routeLost", "addressKnown", "pipeOpened", "dialFailed", "advertised",
        "advertisingFailed", "browsingFailed", "listeningChanged", "transportChanged", "places", "received",
        "pipeBecameWritable", "pipeEnded", "pipeClosed", "pipeDrained",
    ]

    @Test(arguments: reportNames)
    func `An event on another thread is ignored, and the breach is reported on the loop`(_ word: String) {
        let (loop, elsewhere) = (ThreadEventLoop(), ThreadEventLoop())
        let (transport, listener, monitor) = (ScriptedTransport(), Listener(), Monitor())
        transport.findsPlaces = false
        let checked = CheckedTransport(transport)
        let end = End()
        let pipe = ScriptedPipe(of: transport)
        listener.reaction = { word in
            // On the loop: the dial and the pipe are reported after it, in the same turn.
            if word == "down" { loop.execute { monitor.change { end.hasCome = true } } }
        }
        loop.execute {
            checked.start(on: loop, events: listener)
            checked.advertise(ScriptedTransport.sighting.advertisement)
            checked.browse(ScriptedTransport.service)
            transport.events?.routeFound(ScriptedTransport.sighting, by: transport)
            for number in 1...2 {
                checked.dial(
                    ScriptedTransport.address("x"), as: DialID(number: UInt64(number)), timeout: .seconds(600)
                )
            }
            transport.events?.pipeOpened(pipe, dial: DialID(number: 1), by: transport)
            checked.places(behind: ScriptedTransport.address("x")) { result in
                if case .failure(let error) = result, case .contractBroken = error.cause {
                    monitor.change { end.failedAnswers += 1 }
                } else {
                    Issue.record("places were told")
                }
            }
            elsewhere.execute { transport.report(word, pipe) }
        }
        #expect(monitor.wait(within: .seconds(20)) { end.hasCome })
        elsewhere.shutdown()
        loop.shutdown()
        #expect(listener.log == ["found", "opened", "lost somewhere", "down", "failed 2", "closed"])
        #expect(end.failedAnswers == 1)
        guard case .contractBroken(.eventsOnTheLoop, let detail)? = checked.breach?.cause else {
            Issue.record("\(String(describing: checked.breach))")
            return
        }
        #expect(detail == "\(word) was reported on another thread")
    }

    @Test func `If many threads report at once, one breach is reported`() {
        let loop = ThreadEventLoop()
        let others = (0..<4).map { _ in ThreadEventLoop() }
        let (transport, listener, monitor) = (ScriptedTransport(), Listener(), Monitor())
        let checked = CheckedTransport(transport)
        let end = End()
        loop.execute {
            checked.start(on: loop, events: listener)
            for other in others {
                other.execute {
                    for _ in 0..<50 { transport.events?.transportChanged(.up, by: transport) }
                    monitor.change { end.count += 1 }
                }
            }
        }
        #expect(monitor.wait(within: .seconds(20)) { end.count == others.count })
        for other in others { other.shutdown() }
        loop.execute { monitor.change { end.hasCome = true } }
        #expect(monitor.wait(within: .seconds(20)) { end.hasCome })
        loop.shutdown()
        #expect(listener.log == ["down"])
    }

    /// `@unchecked Sendable`: guarded by the monitor.
    private final class End: @unchecked Sendable {
        var hasCome = false
        var count = 0
        var failedAnswers = 0
    }
}

extension ScriptedTransport {
    /// Reports the event on the calling thread.
    fileprivate func report(_ event: String, _ pipe: ScriptedPipe) {
        let (address, sighting) = (Self.address("x"), Self.sighting)
        let error = Self.error()
        switch event {
        case "routeFound": events?.routeFound(sighting, by: self)
        case "routeChanged": events?.routeChanged(sighting, by: self)
        case "routeLost": events?.routeLost(sighting.address, by: self)
        case "addressKnown": events?.addressKnown(address, by: self)
        case "pipeOpened": events?.pipeOpened(ScriptedPipe(of: self), dial: nil, by: self)
        case "dialFailed": events?.dialFailed(DialID(number: 2), error: error, by: self)
        case "advertised": events?.advertised(as: DisplayName(fitting: "x"), by: self)
        case "advertisingFailed": events?.advertisingFailed(error, by: self)
        case "browsingFailed": events?.browsingFailed(error, by: self)
        case "listeningChanged": events?.listeningChanged([address], by: self)
        case "transportChanged": events?.transportChanged(.up, by: self)
        case "places": foundPlaces?(.success([address]))
        case "received": pipe.handler?.pipe(pipe, received: ByteSlice([1]))
        case "pipeBecameWritable": pipe.handler?.pipeBecameWritable(pipe)
        case "pipeEnded": pipe.handler?.pipeEnded(pipe)
        case "pipeClosed": pipe.handler?.pipeClosed(pipe, error: nil)
        case "pipeDrained": pipe.handler?.pipeDrained(pipe)
        default: Issue.record("nothing is known of \(event)")
        }
    }
}
