import CBenchmark
import NighLoop

/// A session that can be found from the moment the driver says so, or a session that looks for it. It reports the
/// moment before it starts, and the moment from which it can be found or can invite the first peer.
struct DiscoveryTime {
    private let setting: BenchmarkSetting

    init(_ setting: BenchmarkSetting) { self.setting = setting }

    func run() {
        let serves = setting.options.serves
        let session = setting.session(serves ? .server : .client)
        if serves { _ = readLine() }
        benchmark_report(serves ? "published-at" : "searching-at", benchmark_now())
        session.start(onEvent: { event in
            switch event {
            case .advertised: benchmark_report("advertised-at", benchmark_now())
            case .peerFound where !serves:
                benchmark_report("found-at", benchmark_now())
            // The failure prevents this session from being found, or from finding others.
            case .problem(let error): BenchmarkSetting.fail("\(error)")
            default: break
            }
        })
        benchmark_wait_for_other_side()
        withExtendedLifetime(session) {}
    }
}
