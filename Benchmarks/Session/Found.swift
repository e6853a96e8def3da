import CBenchmark
import Nigh

/// Starts a session that is found, when the driver says so, and tells the moment before and the one from which on it can be.
struct Publication {
    private let setting: Setting

    init(_ setting: Setting) { self.setting = setting }

    func run() {
        let session = setting.session(.server)
        _ = readLine()
        benchmark_say("published-at", benchmark_now())
        session.start(onEvent: { event in
            if case .advertised = event { benchmark_say("advertised-at", benchmark_now()) }
            Setting.complain(event)
        })
        benchmark_wait_for_other_side()
        withExtendedLifetime(session) {}
    }
}

/// Looks for sessions, and tells the moment before and the one at which the first can be invited.
struct Search {
    private let setting: Setting

    init(_ setting: Setting) { self.setting = setting }

    func run() {
        let session = setting.session(.client)
        benchmark_say("searching-at", benchmark_now())
        session.start(onEvent: { event in
            if case .stateChanged(let peer, from: .unavailable, _) = event, peer.state == .available {
                benchmark_say("found-at", benchmark_now())
            }
            Setting.complain(event)
        })
        benchmark_wait_for_other_side()
        withExtendedLifetime(session) {}
    }
}

extension Setting {
    /// What stands in the way of being found, or of finding.
    @Sendable
    fileprivate static func complain(_ event: SessionEvent) {
        if case .transportFailed(let error) = event { fail("\(error)") }
    }
}
