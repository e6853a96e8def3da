// The module for authors of transports: the contract of transports, event loops and sockets, and how a plugin offers
// its transport. It brings no session.

@_exported import CNighPlugin
@_exported import struct NighCore.Advertisement
@_exported import struct NighCore.ByteQueue
@_exported import struct NighCore.ByteSlice
@_exported import class NighCore.CheckedTransport
@_exported import class NighCore.Chunk
@_exported import struct NighCore.ChunkPool
@_exported import enum NighCore.ContractRule
@_exported import protocol NighCore.DatagramHandler
@_exported import enum NighCore.DatagramOutcome
@_exported import protocol NighCore.DatagramPort
@_exported import struct NighCore.DatagramSource
@_exported import struct NighCore.Diagnosis
@_exported import struct NighCore.DialID
@_exported import struct NighCore.DiscoveryInfo
@_exported import struct NighCore.DisplayName
@_exported import protocol NighCore.EventLoop
@_exported import struct NighCore.LoopTimer
@_exported import struct NighCore.Moment
@_exported import struct NighCore.NighError
@_exported import struct NighCore.PeerID
@_exported import protocol NighCore.Pipe
@_exported import enum NighCore.PipeCloseMode
@_exported import struct NighCore.PipeCounters
@_exported import protocol NighCore.PipeHandler
@_exported import struct NighCore.SeededGenerator
@_exported import struct NighCore.ServiceName
@_exported import struct NighCore.Sighting
@_exported import struct NighCore.TextEntry
@_exported import struct NighCore.TimerQueue
@_exported import protocol NighCore.Transport
@_exported import struct NighCore.TransportAddress
@_exported import struct NighCore.TransportCapabilities
@_exported import enum NighCore.TransportCondition
@_exported import protocol NighCore.TransportEvents
@_exported import struct NighCore.TransportRegistry
@_exported import struct NighCore.TransportSpec
@_exported import enum NighPlugins.TransportPlugin
@_exported import NighUV
