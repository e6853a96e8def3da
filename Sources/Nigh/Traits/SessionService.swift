#if ServiceLifecycleSupport
    import NighCore
    import ServiceLifecycle

    /// A session as a service of a `ServiceGroup`. When the group shuts down, the session says goodbye to its peers: it
    /// is closed in good order. Needs the trait `ServiceLifecycleSupport`.
    public struct SessionService: Service {
        /// The session that runs as long as the service.
        public let session: Session

        /// Makes a service of a session that already runs.
        public init(_ session: Session) { self.session = session }

        /// Returns once the session is closed: after a graceful shutdown, a cancellation, or by the program.
        public func run() async throws {
            await cancelWhenGracefulShutdown { await session.run() }
        }
    }
#endif
