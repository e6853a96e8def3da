import CBenchmark
import Nigh

/// A session that is found, from when the driver says so, or one that looks for it. It tells the moment before it starts, and the
/// one from which on it can be found or the first peer can be invited.
struct Found {
    private let setting: Setting

    init(_ setting: Setting) { self.setting = setting }

    func run() {
        let serves = setting.options.serves
        let session = setting.session(serves ? .server : .client)
        if serves { _ = readLine() }
        benchmark_say(serves ? "published-at" : "searching-at", benchmark_now())
        session.start(onEvent: { event in
            switch event {
            case .advertised: benchmark_say("advertised-at", benchmark_now())
            case .stateChanged(let peer, from: .unavailable, _) where !serves && peer.state == .available:
                benchmark_say("found-at", benchmark_now())
            // It stands in the way of being found, or of finding.
            case .transportFailed(let error): Setting.fail("\(error)")
            default: break
            }
        })
        benchmark_wait_for_other_side()
        withExtendedLifetime(session) {}
    }
}
