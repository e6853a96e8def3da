// The module for programs: sessions for async code and `Codable` messages. `NighLoop` has the low tier below them, and
// `NighTransport` the interface for authors of transports.

@_exported import struct NighCore.ByteSlice
@_exported import class NighCore.ByteStream
@_exported import struct NighCore.EventSequence
@_exported import struct NighCore.FileFault
@_exported import struct NighCore.Guest
@_exported import struct NighCore.GuestInvitation
@_exported import struct NighCore.Incoming
@_exported import struct NighCore.Invitation
@_exported import enum NighCore.Lane
@_exported import struct NighCore.Message
@_exported import struct NighCore.MessageOrigin
@_exported import struct NighCore.MessageSequence
@_exported import struct NighCore.Metric
@_exported import struct NighCore.NighError
@_exported import struct NighCore.PairingCode
@_exported import struct NighCore.PartialSendError
@_exported import struct NighCore.Peer
@_exported import struct NighCore.PeerID
@_exported import enum NighCore.PeerState
@_exported import enum NighCore.PeerTrust
@_exported import class NighCore.Session
@_exported import enum NighCore.SessionEvent
@_exported import struct NighCore.SessionLimits
@_exported import enum NighCore.SessionSecurity
@_exported import struct NighCore.SessionTimings
@_exported import struct NighCore.TransportAddress
@_exported import struct NighWeb.WebPage
@_exported import struct NighFiles.FileItem
@_exported import struct NighFiles.FileOffer
@_exported import struct NighFiles.FileProgress
@_exported import struct NighFiles.FileResult
@_exported import class NighFiles.FileTransfer
