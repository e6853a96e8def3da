import CBenchmark
import Nigh

extension BenchmarkSetting {
    /// Makes a session for tasks of the global pool, as programs of `import Nigh` do.
    func taskSession(_ adjust: (inout SessionSettings) -> Void = { _ in }) -> Session {
        Self.demand { () throws(NighError) in
            try Session(service: "bench", name: "bench", transports: transport) {
                $0.identity = .temporary
                $0.security = security
                $0.advertises = options.serves
                $0.browses = !options.serves
                adjust(&$0)
            }
        }
    }

    /// Reports the session's port, and accepts every caller.
    func accept(with session: Session) {
        Task {
            for await event in session.events {
                switch event {
                case .listening(_, let addresses):
                    if let port = addresses.first?.value.split(separator: ":").last {
                        benchmark_report_port(String(port))
                    }
                case .invited(let invitation): invitation.accept()
                default: break
                }
            }
        }
    }

    /// Invites the server.
    func invite(with session: Session) async -> Peer {
        do throws(NighError) {
            return try await session.invite(at: address().description)
        } catch {
            Self.fail("\(error)")
        }
    }
}
