import CoreMetrics
import Logging
import Nigh

/// Lets a session send three messages, logged and measured, until its service group shuts down. Prints the log, and
/// the metrics while the session lives and afterwards.
@main enum Main {
    static func main() async throws {
        let network = "memory:hub=1"
        let other = try Session(service: "scores", name: "Lynx", transports: network) {
            $0.identity = .temporary
            $0.connectsAutomatically = true
        }
        let logger = Logger(label: "program")
        let session = try makeSession(transports: network, logger: logger)
        let group = serviceGroup(session, logger)
        async let served: Void = group.run()
        for await case .connected(let peer) in session.events {
            for number in 1...3 { try await peer.send(number) }
            try await peer.flush()
            break
        }
        while Backend.value(of: "nigh_messages_sent") != 3 {
            try await session.clock.sleep(for: .milliseconds(1))
        }
        let sent = Backend.names.filter { $0.hasPrefix("nigh_messages_sent") }
        print("metrics", sent, Backend.value(of: "nigh_peers_connected") ?? 0, separator: "|")
        await group.triggerGracefulShutdown()
        try await served
        print("ended", Backend.names, separator: "|")
        await other.close()
    }
}
