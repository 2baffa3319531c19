package remoting

// Request codes. N: served by the name server, B: by the broker, C: by the client.
const (
	SendMessage               int32 = 10  // B
	PullMessage               int32 = 11  // B
	QueryMessage              int32 = 12  // B
	QueryConsumerOffset       int32 = 14  // B
	UpdateConsumerOffset      int32 = 15  // B
	CreateTopic               int32 = 17  // B
	GetAllTopicConfig         int32 = 21  // B
	UpdateBrokerConfig        int32 = 25  // B
	GetBrokerConfig           int32 = 26  // B
	GetBrokerRuntimeInfo      int32 = 28  // B
	SearchOffsetByTimestamp   int32 = 29  // B
	GetMaxOffset              int32 = 30  // B
	GetMinOffset              int32 = 31  // B
	GetEarliestStoreTime      int32 = 32  // B
	ViewMessageByID           int32 = 33  // B
	Heartbeat                 int32 = 34  // B
	UnregisterClient          int32 = 35  // B
	ConsumerSendMessageBack   int32 = 36  // B
	EndTransaction            int32 = 37  // B
	GetConsumerListByGroup    int32 = 38  // B
	CheckTransactionState     int32 = 39  // C
	NotifyConsumerIDsChanged  int32 = 40  // C
	LockBatchQueues           int32 = 41  // B
	UnlockBatchQueues         int32 = 42  // B
	GetAllConsumerOffset      int32 = 43  // B
	GetAllDelayOffset         int32 = 45  // B
	CheckClientConfig         int32 = 46  // B
	PutKVConfig               int32 = 100 // N
	GetKVConfig               int32 = 101 // N
	DeleteKVConfig            int32 = 102 // N
	RegisterBroker            int32 = 103 // N
	UnregisterBroker          int32 = 104 // N
	GetRouteByTopic           int32 = 105 // N
	GetClusterInfo            int32 = 106 // N
	CreateSubscriptionGroup   int32 = 200 // B
	GetAllSubscriptionGroups  int32 = 201 // B
	GetTopicStats             int32 = 202 // B
	GetConsumerConnections    int32 = 203 // B
	GetProducerConnections    int32 = 204 // B
	WipeWritePermission       int32 = 205 // N
	GetAllTopics              int32 = 206 // N
	DeleteSubscriptionGroup   int32 = 207 // B
	GetConsumeStats           int32 = 208 // B
	DeleteTopicInBroker       int32 = 215 // B
	DeleteTopicInNameServer   int32 = 216 // N
	RegisterTopic             int32 = 217 // N, 5.x
	GetKVList                 int32 = 219 // N
	ResetConsumerOffset       int32 = 220 // C
	GetConsumerStatus         int32 = 221 // C
	InvokeResetOffset         int32 = 222 // B
	InvokeConsumerStatus      int32 = 223 // B
	GetTopicsByCluster        int32 = 224 // N
	QueryTopicConsumeByWho    int32 = 300 // B
	QueryConsumeTimeSpan      int32 = 303 // B
	GetSystemTopics           int32 = 304 // N
	GetSystemTopicsFromBroker int32 = 305 // B
	CleanExpiredQueues        int32 = 306 // B
	GetConsumerRunningInfo    int32 = 307 // C, relayed by B
	ConsumeMessageDirectly    int32 = 309 // C, relayed by B
	SendMessageV2             int32 = 310 // B
	GetUnitTopics             int32 = 311 // N
	GetUnitSubTopics          int32 = 312 // N
	GetUnitSubNotUnitTopics   int32 = 313 // N
	CloneGroupOffset          int32 = 314 // B
	ViewBrokerStats           int32 = 315 // B
	CleanUnusedTopic          int32 = 316 // B
	GetBrokerConsumeStats     int32 = 317 // B
	UpdateNameServerConfig    int32 = 318 // N
	GetNameServerConfig       int32 = 319 // N
	SendBatchMessage          int32 = 320 // B
	QueryDataVersion          int32 = 322 // N
	SendReplyMessage          int32 = 324 // B
	SendReplyMessageV2        int32 = 325 // B
	PushReplyMessage          int32 = 326 // C
	AddWritePermission        int32 = 327 // N
	DeleteExpiredLog          int32 = 329 // B
	LitePullMessage           int32 = 361 // B, 5.x
	QueryAssignment           int32 = 400 // B, 5.x
	GetBrokerMemberGroup      int32 = 901 // N, 5.x
	BrokerHeartbeat           int32 = 904 // N, 5.x
	NotifyMinBrokerIDChange   int32 = 905 // B, 5.x
)

// Response codes.
const (
	Success                   int32 = 0
	SystemError               int32 = 1
	SystemBusy                int32 = 2
	RequestCodeNotSupported   int32 = 3
	TransactionFailed         int32 = 4
	FlushDiskTimeout          int32 = 10 // stored
	SlaveNotAvailable         int32 = 11 // stored
	FlushSlaveTimeout         int32 = 12 // stored
	MessageIllegal            int32 = 13
	ServiceNotAvailable       int32 = 14
	VersionNotSupported       int32 = 15
	NoPermission              int32 = 16
	TopicNotExist             int32 = 17
	TopicExistAlready         int32 = 18
	PullNotFound              int32 = 19
	PullRetryImmediately      int32 = 20
	PullOffsetMoved           int32 = 21
	QueryNotFound             int32 = 22
	SubscriptionParseFailed   int32 = 23
	SubscriptionNotExist      int32 = 24
	SubscriptionNotLatest     int32 = 25
	SubscriptionGroupNotExist int32 = 26
	FilterDataNotExist        int32 = 27
	FilterDataNotLatest       int32 = 28
	InvalidParameter          int32 = 29
	NoBuyerID                 int32 = 204
	NotInCurrentUnit          int32 = 205
	ConsumerNotOnline         int32 = 206
	ConsumeMessageTimeout     int32 = 207
	NoMessage                 int32 = 208
	FlowControl               int32 = 215
	NotLeaderForQueue         int32 = 501
	IllegalOperation          int32 = 604
	GoAway                    int32 = 1500
)

// Ordinals of MQVersion that change what a peer sends or understands. A released version stands two above the one
// before it.
const (
	Version3011 int32 = 37
	Version314  int32 = 55
	Version326  int32 = 79
	Version349  int32 = 121
	Version400  int32 = 213
	Version494  int32 = 401
	Version497  int32 = 407
	Version500  int32 = 413
	Version533  int32 = 479

	// Version is what we claim to be in every frame that does not say otherwise.
	Version = Version497
)
