import NighCompatibility
import Synchronization

/// Nigh's own settings for this module, which a program written for Apple's need not know.
///
/// Change them before the program's first advertiser, browser or session.
public enum NighMultipeer {
    /// The settings.
    public struct Settings: Sendable {
        /// The transports of sessions, as Nigh's flags take them: "tcp", "bluetooth", "tcp:port=4000,bluetooth", the
        /// scheme of a plugin. By default the value of the environment variable `NIGH_TRANSPORTS`, else all that this
        /// machine has.
        public var transports = TransportChoice.byDefault
        /// The transports of one peer of this program, if not `transports`. In tests each peer has a Bluetooth adapter
        /// of its own.
        package var transportsOfPeer: @Sendable (MCPeerID) -> String? = { _ in nil }
        /// The folder for the private keys of peers that were archived. By default the value of the environment
        /// variable `NIGH_MULTIPEER_KEYS`, else a folder of this user's.
        public var identityFolder: String
        /// The most peers in one session, oneself included.
        public var maximumNumberOfPeers = kMCSessionMaximumNumberOfPeers
        /// How many bytes of reliable messages may wait for one peer before `MCSession.send` throws
        /// `MCError.unavailable`.
        public var sendBuffer = 64 << 20
        /// The most bytes in one message. `MCSession.send` throws `MCError.invalidParameter` for more.
        public var messageLimit = 64 << 20
        /// For how long a peer may be out of reach before a session reports it as not connected.
        public var reconnectionTime = Duration.seconds(10)
        /// How long an invitation may take whose timeout is 0 or less. A browser takes it when it is made.
        public var invitationTime = Duration.seconds(30)
        /// How long connecting may take once an invitation is accepted. That includes the time that certificate
        /// handlers take to answer. A session takes it when it is made.
        public var connectingTime = Duration.seconds(30)
        /// How long a conversation that nobody needs goes on.
        package var idleConversationTime = Duration.seconds(10)

        init() {
            let environment = ProcessInfo.processInfo.environment
            let data = environment["XDG_DATA_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
            identityFolder =
                environment["NIGH_MULTIPEER_KEYS"]
                ?? "\(data ?? "\(NSHomeDirectory())/.local/share")/nigh/multipeer"
        }
    }

    private static let current = Mutex(Settings())

    /// Other settings for the objects that one task makes. Tests run at the same time and want different ones.
    @TaskLocal package static var settingsOfTask: Settings?

    /// The settings as they are now.
    public static var settings: Settings { settingsOfTask ?? current.withLock { $0 } }

    /// Changes the settings.
    public static func configure(_ change: (inout Settings) -> Void) {
        current.withLock { change(&$0) }
    }

    private static let presenterBox = Mutex<(any NighPresenter)?>(nil)

    /// The user interface of `MCAdvertiserAssistant` and `MCBrowserViewController`, which have no windows here. Without
    /// a presenter an assistant declines every invitation.
    public static var presenter: (any NighPresenter)? {
        get { presenterBox.withLock { $0 } }
        set { presenterBox.withLock { $0 = newValue } }
    }

    /// Reports to the person an event that no delegate gets.
    static func report(_ line: String) { Notice.say(line, by: module) }

    /// The name of this module.
    static let module = "MultipeerConnectivity"
}
