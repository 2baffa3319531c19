package commitlog

var NewGroup = newGroup
