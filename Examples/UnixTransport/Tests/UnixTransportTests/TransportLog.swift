import Foundation
import NighCore
import NighUV

@testable import UnixTransport

/// A transport on a loop of its own, and the events that it has reported, which a test can wait for.
///
/// `@unchecked Sendable`: the condition guards the events.
final class TransportLog: TransportEvents, @unchecked Sendable {
    let loop = UVEventLoop()
    let transport: UnixTransport
    private let condition = NSCondition()
    private var reported: [String] = []

    init(_ folder: String) {
        transport = UnixTransport(folder: folder)
        loop.execute { [self] in transport.start(on: loop, events: self) }
    }

    /// Runs `work` on the loop, and returns when it is done.
    func call(_ work: @escaping @Sendable (UnixTransport) -> Void) {
        let done = DispatchSemaphore(value: 0)
        loop.execute { [transport] in
            work(transport)
            done.signal()
        }
        done.wait()
    }

    /// Waits up to a minute for `events`, in any order. Returns whether all were reported since the last successful
    /// wait.
    func waitFor(_ events: String...) -> Bool {
        condition.withLock {
            let deadline = Date(timeIntervalSinceNow: 60)
            while true {
                let found = events.map { event in reported.firstIndex { $0.hasPrefix(event) } }
                if let last = found.compactMap(\.self).max(), !found.contains(nil) {
                    reported.removeFirst(last + 1)
                    return true
                }
                if !condition.wait(until: deadline) { return false }
            }
        }
    }

    /// The events reported since the last successful wait.
    var rest: [String] { condition.withLock { reported } }

    func end() {
        call { $0.shutdown() }
        loop.shutdown()
    }

    private func note(_ event: String) {
        condition.withLock {
            reported.append(event)
            condition.broadcast()
        }
    }

    func routeFound(_ sighting: Sighting, by transport: any Transport) {
        note("found \(sighting.advertisement.name)")
    }
    func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        note("changed \(sighting.advertisement.name)")
    }
    func routeLost(_ address: TransportAddress, by transport: any Transport) { note("lost") }
    func addressKnown(_ address: TransportAddress, by transport: any Transport) { note("known") }
    func pipeOpened(_ pipe: any NighCore.Pipe, dial: DialID?, by transport: any Transport) {
        note(dial == nil ? "accepted" : "opened")
    }
    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        note("failed \(error.cause), \(error.transport ?? "nowhere")")
    }
    func advertised(as name: DisplayName, by transport: any Transport) { note("advertised \(name)") }
    func advertisingFailed(_ error: NighError, by transport: any Transport) {
        note("not advertised: \(error)")
    }
    func browsingFailed(_ error: NighError, by transport: any Transport) { note("not browsing: \(error)") }
    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        note(addresses.isEmpty ? "deaf" : "listening")
    }
    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        switch condition {
        case .up: note("up")
        case .down(let error): note("down: \(error.cause); \(error.advice ?? "no advice")")
        }
    }
}
