import NighCompatibility
import NighLoop
import Synchronization

/// Nigh's own settings for this module, which a program written for Apple's need not know.
///
/// A session takes them when it becomes available for the first time.
public enum NighGameKit {
    /// The settings.
    public struct Settings: Sendable {
        /// The transports of sessions, as Nigh's flags take them: "tcp", "tcp:port=4000,bluetooth", the scheme of a
        /// plugin. By default the value of the environment variable `NIGH_TRANSPORTS`, else all that this machine has.
        public var transports = TransportChoice.byDefault
    }

    /// The name of this module.
    static let module = "GameKit"

    private static let current = Mutex(Settings())

    /// The settings as they are now.
    public static var settings: Settings { current.withLock { $0 } }

    /// Changes the settings.
    public static func configure(_ change: (inout Settings) -> Void) {
        current.withLock { change(&$0) }
    }

    /// The user interface of ``GKPeerPickerController``. Without one, a picker cancels itself as soon as it is shown.
    /// Set it on the main queue, which alone reads it.
    nonisolated(unsafe) public static var presenter: (any PeerPickerPresenter)?
}
