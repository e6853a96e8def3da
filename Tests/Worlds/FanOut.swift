import NighCore
import NighTestKit

/// A host and its guests in virtual time, over memory: what connecting many costs, and a message to all of them.
///
/// `@unchecked Sendable`: confined to the thread that runs it.
package final class FanOut: @unchecked Sendable {
    private static let service: ServiceName = "fan-out"
    /// How many guests call at a time: as many as may call a listener over memory before it looks.
    private static let callsAtOnce = 256

    private let network = SimulatedNetwork(on: VirtualEventLoop(workLimit: .max))
    private let size: Int
    private var host: Session?
    private var guests: [Session] = []
    private var connected = 0
    private var received = 0

    /// Pieces of work that the loop has done.
    package var workDone: Int { network.loop.workDone }

    /// Makes a host without guests.
    package init(to size: Int) {
        self.size = size
        let host = makeSession(0)
        self.host = host
        host.start(
            onEvent: { event in
                if case .invited(let invitation) = event { invitation.accept() }
            }, onMessage: { _, _ in })
        advance(.milliseconds(1))
    }

    /// Connects all guests. Returns how many are connected.
    package func connect() -> Int {
        for first in stride(from: 1, through: size, by: Self.callsAtOnce) {
            for number in first..<min(first + Self.callsAtOnce, size + 1) {
                let guest = makeSession(number)
                guests.append(guest)
                guest.start(onEvent: { _ in }, onMessage: { [unowned self] _, _ in received += 1 })
                // It knows where the host is.
                guest.stopBrowsing()
                guest.invite(at: TransportAddress(scheme: "memory", value: "m0")) { [unowned self] result in
                    if case .success = result { connected += 1 }
                }
            }
            advance(.milliseconds(20))
        }
        return connected
    }

    /// Sends one message of 1 KiB to all. Returns how many it has reached.
    package func broadcast() -> Int {
        received = 0
        let payload = ByteSlice([UInt8](repeating: 7, count: 1 << 10))
        if let host { try? host.trySend(payload, to: host.connectedPeerIDs) }
        advance(.milliseconds(5))
        return received
    }

    /// Ends all sessions.
    package func end() {
        for session in guests { session.crash() }
        host?.crash()
        advance(.milliseconds(1))
    }

    private func makeSession(_ number: Int) -> Session {
        var configuration = SessionConfiguration(
            service: Self.service, name: DisplayName(fitting: "\(number)"),
            role: number == 0 ? .server : .client)
        configuration.seed = UInt64(number + 1)
        configuration.security = .none
        configuration.datagrams = false
        configuration.limits.peers = number == 0 ? size : 1
        if number == 0 {
            configuration.limits.knownPeers = max(size, configuration.limits.knownPeers)
            configuration.limits.unauthenticatedPipes = Self.callsAtOnce
            configuration.limits.pendingInvitations = Self.callsAtOnce
        }
        return Session(
            configuration, identity: .ephemeral(seed: UInt64(number + 1)),
            transports: network.addHost(at: "m\(number)").transports, loop: network.loop)
    }

    private func advance(_ duration: Duration) { try? network.loop.run(for: duration) }
}
