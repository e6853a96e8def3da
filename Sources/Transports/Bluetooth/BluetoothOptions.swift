import NighCore

/// What can be chosen about the transport `bluetooth`.
public struct BluetoothOptions: Sendable {
    /// The adapter to use, such as `hci1`; the first that is switched on when nil.
    public var adapter: String?
    /// Whether to make this machine discoverable while it advertises. Without, it is found only by devices it is paired with.
    public var makesDiscoverable: Bool
    /// How often a device with sessions is asked whether it still has them; a second at least.
    public var interval: Duration
    /// A device to be seen without being found, by its address.
    public var knownAddresses: [TransportAddress]
    /// Who answers when devices want to be paired; nobody when nil, which is enough: a session secures its links itself.
    public var pairing: BluetoothPairing?

    /// All of it.
    public init(
        adapter: String? = nil, makesDiscoverable: Bool = true, interval: Duration = .seconds(10),
        knownAddresses: [TransportAddress] = [], pairing: BluetoothPairing? = nil
    ) {
        self.adapter = adapter
        self.makesDiscoverable = makesDiscoverable
        self.interval = interval
        self.knownAddresses = knownAddresses
        self.pairing = pairing
    }

    /// The options a spec may carry, for the registry.
    static let keys = [
        "adapter": "the adapter to use, such as hci1; the first that is switched on when left out",
        "device": "a peer known by hand: its device's address, such as 00:11:22:33:44:55",
        "discoverable": "yes or no: whether strangers' devices may find this one; yes when left out",
        "interval": "seconds from one look at a device to the next, 1 to 600; 10 when left out",
        "pairing": "none or just-works: how a device that wants to be paired is answered; none when left out",
    ]

    /// What the options of a spec say.
    init(_ spec: TransportSpec) throws(NighError) {
        self.init()
        if let name = spec.options["adapter"] {
            guard let number = UInt16(name.dropFirst(3)), name == "hci\(number)" else {
                throw Self.invalid(
                    "adapter \"\(name)\"", "adapters are called hci0, hci1 …; `bluetoothctl list` shows them")
            }
            adapter = name
        }
        if let text = spec.options["device"] {
            let address = TransportAddress(scheme: BluetoothTransport.schemeName, value: text)
            do throws(NighError) {
                knownAddresses = [try BluetoothDestination(address).transportAddress]
            } catch {
                throw Self.invalid("device \"\(text)\"", error.advice ?? "")
            }
        }
        if let text = spec.options["discoverable"] {
            guard let isYes = ["yes": true, "no": false][text] else {
                throw Self.invalid("discoverable \"\(text)\"", "write yes or no")
            }
            makesDiscoverable = isYes
        }
        if let text = spec.options["interval"] {
            guard let seconds = Int(text), (1...600).contains(seconds) else {
                throw Self.invalid("interval \"\(text)\"", "write seconds, from 1 to 600")
            }
            interval = .seconds(seconds)
        }
        switch spec.options["pairing"] {
        case nil, "none": break
        case "just-works": pairing = .justWorks
        case let text?: throw Self.invalid("pairing \"\(text)\"", "known are: none, just-works")
        }
    }

    private static func invalid(_ what: String, _ advice: String) -> NighError {
        NighError(.configuring, .invalid(what), transport: BluetoothTransport.schemeName, advice: advice)
    }
}

/// How this machine answers a device that wants to be paired on the level of Bluetooth.
public struct BluetoothPairing: Sendable {
    /// What is asked: a device, and six digits where both sides show some.
    public struct Request: Sendable {
        /// The other device's address, as `00:11:22:33:44:55`.
        public let device: String
        /// What both screens show; nil where there is nothing to compare.
        public let digits: String?
    }

    /// Whether the other side has a screen that the digits can be compared with.
    let comparesDigits: Bool
    /// Asked on the loop; the answer may be given later and on any thread, once.
    let decide: @Sendable (Request, _ answer: @escaping @Sendable (Bool) -> Void) -> Void

    /// Every device is let in without a word. Keeps out nobody; the session's own security is on top of it.
    public static let justWorks = BluetoothPairing(comparesDigits: false) { _, answer in answer(true) }

    /// A person compares six digits on both screens. `decide` is called on the session's loop with what to show, and answers when
    /// the person has: on any thread, once. bluetoothd itself gives up after about half a minute.
    public static func comparison(
        _ decide: @escaping @Sendable (Request, _ answer: @escaping @Sendable (Bool) -> Void) -> Void
    ) -> BluetoothPairing {
        BluetoothPairing(comparesDigits: true, decide: decide)
    }
}
