import NighCore

/// Advertises the peer of a session, and has the person asked about invitations to it.
///
/// There are no windows here, so `NighMultipeer.presenter` asks the person. Without a presenter every invitation is
/// declined.
open class MCAdvertiserAssistant: NSObject {
    /// The session that peers are invited into.
    public let session: MCSession
    /// The keys and values that browsers get together with the peer.
    public let discoveryInfo: [String: String]?
    /// The name of the service. Programs with equal names find each other.
    public let serviceType: String

    private let advertiser: MCNearbyServiceAdvertiser
    private let delegateBox = DelegateBox()
    private let answering: AssistantAnswering

    /// Creates an assistant.
    public init(serviceType: String, discoveryInfo info: [String: String]?, session: MCSession) {
        self.session = session
        discoveryInfo = info
        self.serviceType = serviceType
        advertiser = MCNearbyServiceAdvertiser(
            peer: session.myPeerID, discoveryInfo: info, serviceType: serviceType)
        answering = AssistantAnswering()
        super.init()
        answering.assistant = self
        advertiser.delegate = answering
    }

    /// The object that is notified when the person is asked, and when that is over. The assistant does not retain it.
    open var delegate: (any MCAdvertiserAssistantDelegate)? {
        get { delegateBox.value as? any MCAdvertiserAssistantDelegate }
        set { delegateBox.value = newValue }
    }

    /// Begins to advertise.
    open func start() { advertiser.startAdvertisingPeer() }

    /// Stops advertising.
    open func stop() { advertiser.stopAdvertisingPeer() }
}

/// Receives the events of an assistant.
public protocol MCAdvertiserAssistantDelegate: NSObjectProtocol {
    /// The person is about to be asked.
    func advertiserAssistantWillPresentInvitation(_ advertiserAssistant: MCAdvertiserAssistant)
    /// The person has answered.
    func advertiserAssistantDidDismissInvitation(_ advertiserAssistant: MCAdvertiserAssistant)
}

// Defaults for the methods that are optional in Apple's protocol.
extension MCAdvertiserAssistantDelegate {
    /// Does nothing.
    public func advertiserAssistantWillPresentInvitation(_ advertiserAssistant: MCAdvertiserAssistant) {}
    /// Does nothing.
    public func advertiserAssistantDidDismissInvitation(_ advertiserAssistant: MCAdvertiserAssistant) {}
}

/// Answers invitations for an assistant.
private final class AssistantAnswering: NSObject, MCNearbyServiceAdvertiserDelegate {
    weak var assistant: MCAdvertiserAssistant?

    func advertiser(
        _ advertiser: MCNearbyServiceAdvertiser, didReceiveInvitationFromPeer peerID: MCPeerID,
        withContext context: Data?, invitationHandler: @escaping (Bool, MCSession?) -> Void
    ) {
        guard let assistant else { return invitationHandler(false, nil) }
        guard let presenter = NighMultipeer.presenter else {
            NighMultipeer.report(
                "an invitation of \(peerID.displayName) was declined: NighMultipeer.presenter is not set")
            return invitationHandler(false, nil)
        }
        assistant.delegate?.advertiserAssistantWillPresentInvitation(assistant)
        presenter.ask(about: NighInvitation(peerID: peerID, context: context, session: assistant.session)) {
            accepts in
            invitationHandler(accepts, accepts ? assistant.session : nil)
            assistant.delegate?.advertiserAssistantDidDismissInvitation(assistant)
        }
    }
}
