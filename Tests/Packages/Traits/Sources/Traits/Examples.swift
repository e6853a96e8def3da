import Logging
import Nigh
import ServiceLifecycle

func makeSession(transports: String? = nil, logger: Logger) throws -> Session {
    try Session(service: "scores", transports: transports) { settings in
        settings.log(to: logger)
        settings.identity = .temporary
        settings.connectsAutomatically = true
    }
}

/// Reports metrics for as long as the session lives.
struct MetricsService: Service {
    let session: Session

    func run() async throws {
        await session.reportMetrics(every: .seconds(1), dimensions: [("session", "scores")])
    }
}

func serviceGroup(_ session: Session, _ logger: Logger) -> ServiceGroup {
    ServiceGroup(
        services: [SessionService(session), MetricsService(session: session)],
        gracefulShutdownSignals: [.sigterm], logger: logger)
}
