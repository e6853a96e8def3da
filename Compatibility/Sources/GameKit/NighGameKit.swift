import NighLoop
import Synchronization

/// What a program can set that Apple's GameKit has no name for. Ported code need not know it.
public enum NighGameKit {
    /// The environment variable that names the transports of all sessions: `NIGH_TRANSPORTS=tcp`.
    public static let transportsVariable = "NIGH_TRANSPORTS"

    private static let chosenTransports = Mutex<String?>(nil)

    /// The transports of the sessions that become available from now on, as a flag takes them: "tcp", "tcp:port=4000,bluetooth",
    /// the scheme of a plugin. By default what the environment variable `NIGH_TRANSPORTS` names, and without it TCP and
    /// Bluetooth, as far as this machine has them.
    public static var transports: String {
        get {
            chosenTransports.withLock { $0 } ?? ProcessInfo.processInfo.environment[transportsVariable]
                ?? TransportRegistry.standard.reachingOtherPrograms
        }
        set { chosenTransports.withLock { $0 = newValue } }
    }

    /// What shows ``GKPeerPickerController`` to people. Without one, a picker cancels itself as soon as it is shown. Set it
    /// on the main queue, which alone reads it.
    nonisolated(unsafe) public static var presenter: (any PeerPickerPresenter)?
}
